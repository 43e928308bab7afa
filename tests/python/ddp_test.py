"""DistributedDataParallel over sinew: N processes are one process, and ranks have equal bits."""

import hashlib
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from launch import DEVICE, run_ranks

STEPS = 4
BATCH = 64
FULL = os.environ.get("SINEW_FULL") == "1"


def make(name):
    torch.manual_seed(1)
    if name == "mlp":  # 1,201,290 parameters
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 384),
                             nn.ReLU(), nn.Linear(384, 10))
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(),
                         nn.Linear(128, 10))  # 1,199,882


def batches():
    generator = torch.Generator().manual_seed(2)
    for _ in range(STEPS):
        yield (torch.randn(BATCH, 1, 28, 28, generator=generator).to(DEVICE),
               torch.randint(0, 10, (BATCH,), generator=generator).to(DEVICE))


def train(model, rank, size):
    torch.backends.cudnn.allow_tf32 = False
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for images, labels in batches():
        optimizer.zero_grad()
        share = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
        nn.functional.cross_entropy(model(images[share]), labels[share]).backward()
        optimizer.step()


def flat(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()]).cpu()


def main(name):
    torch.set_num_threads(1)
    if os.environ["BACKEND"] == "sinew":
        import sinew_torch  # noqa: F401
    dist.init_process_group(os.environ["BACKEND"])
    rank, size = dist.get_rank(), dist.get_world_size()
    ddp = nn.parallel.DistributedDataParallel(make(name).to(DEVICE))
    train(ddp, rank, size)
    result = flat(ddp)
    if rank == 0:
        torch.save(result, os.environ["RESULT"])
    print(json.dumps(hashlib.sha256(result.numpy().tobytes()).hexdigest()))
    dist.barrier()
    dist.destroy_process_group()


def test():
    torch.set_num_threads(1)
    path = f"/tmp/sinew_ddp_test.{os.getpid()}"
    try:
        for name in ("mlp", "cnn"):
            alone = make(name).to(DEVICE)
            train(alone, 0, 1)
            right = flat(alone)
            sizes = (2, 4, 8) if FULL or name == "mlp" else (2,)
            for size in sizes:
                for backend in ("sinew", "gloo"):
                    hashes = run_ranks(name, size, backend, extra={"RESULT": path})
                    assert len(set(hashes)) == 1, f"{name}, {size} ranks of {backend} differ"
                    got = torch.load(path)
                    apart = float((got - right).norm() / right.norm())
                    print(f"{name} {backend} {size} ranks, {DEVICE}: relative L2 {apart:.2e}, ranks equal")
                    assert apart <= 1e-6
    finally:
        if os.path.exists(path):
            os.remove(path)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        test()
