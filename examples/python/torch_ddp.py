"""DistributedDataParallel over sinew: sinew launch -n 2 -- python3 torch_ddp.py

Two lines are not plain torch: the import, and the backend's name.
"""

import torch
import torch.distributed as dist
from torch import nn

import sinew_torch  # noqa: F401

dist.init_process_group("sinew")
torch.manual_seed(dist.get_rank())
model = nn.parallel.DistributedDataParallel(
    nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(200):
    inputs = torch.randn(32, 20)
    labels = (inputs.sum(1) > 0).long()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.all_reduce(loss.detach_(), dist.ReduceOp.AVG)
if dist.get_rank() == 0:
    print(f"{dist.get_world_size()} ranks, loss {loss.item():.3f} after {step + 1} steps")
    assert loss.item() < 0.3
dist.destroy_process_group()
