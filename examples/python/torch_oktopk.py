"""DDP that sends 2 % of its gradients: sinew launch -n 2 -- python3 torch_oktopk.py"""

import torch
import torch.distributed as dist
from torch import nn

import sinew_torch

dist.init_process_group("sinew")
torch.manual_seed(1)
model = nn.parallel.DistributedDataParallel(
    nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Linear(512, 2)))
hook = sinew_torch.hooks.oktopk(density=0.02, warmup=20).register(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for step in range(300):
    inputs = torch.randn(32, 20)
    labels = (inputs.sum(1) > 0).long()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.all_reduce(loss.detach_(), dist.ReduceOp.AVG)
if dist.get_rank() == 0:
    dense = sum(4 * p.numel() for p in model.parameters())
    sent = sum(report["sent_bytes"] for report in hook.reports())
    print(f"loss {loss.item():.3f}; the last step sent {sent} bytes, a gradient has {dense}")
    assert loss.item() < 0.4 and sent < dense
dist.destroy_process_group()
