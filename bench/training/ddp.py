#!/usr/bin/env python3
"""torch's DistributedDataParallel over Gloo on the models of `sinew train`: ddp.py MODEL STEPS BATCH.

One worker, under `sinew launch`, torchrun or anything that sets RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT. Rank 0 prints a JSON object: steady_steps_per_s, without the first ten steps.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

WARMUP = 10


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3),
                                      nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25))
        self.classes = nn.Sequential(nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Dropout(0.5),
                                     nn.Linear(128, 10))

    def forward(self, x):
        return self.classes(self.features(x).flatten(1))


def make_model(name):
    if name == "tiny":
        return nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 10)), (10,)
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 384),
                             nn.ReLU(), nn.Linear(384, 10)), (1, 28, 28)
    return Cnn(), (1, 28, 28)


def main():
    name, steps, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    model, shape = make_model(name)
    model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    # As many samples as there are, so that neither side reads from a cache that the other has not.
    inputs = torch.randn(4096, *shape)
    labels = torch.randint(0, 10, (4096,))
    begin = 0.0
    for step in range(WARMUP + steps):
        if step == WARMUP:
            dist.barrier()
            begin = time.perf_counter()
        which = torch.randint(0, 4096, (batch,))
        optimizer.zero_grad(set_to_none=False)
        loss = loss_of(model(inputs[which]), labels[which])
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    if dist.get_rank() == 0:
        print(json.dumps({"workers": dist.get_world_size(), "steady_steps_per_s": steps / seconds,
                          "torch": torch.__version__}))
    dist.barrier()


if __name__ == "__main__":
    main()
