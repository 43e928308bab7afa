#!/usr/bin/env python3
"""DDP with the Ok-Topk hook against dense DDP: accuracy on Fashion-MNIST, several seeds.

bench/torch/convergence.py -o FILE.json; two ranks, the CNN of 1,199,882 parameters without dropout.
"""

import argparse
import gzip
import json
import os
import socket
import statistics
import subprocess
import sys

import numpy

FOLDER = "/usr/share/datasets/fashion-mnist"


def read(folder, kind):
    def load(name, header):
        for path in (f"{folder}/{name}.gz", f"{folder}/{name}"):
            if os.path.exists(path):
                opened = gzip.open(path) if path.endswith(".gz") else open(path, "rb")
                with opened as file:
                    return numpy.frombuffer(file.read(), numpy.uint8, offset=header)
        sys.exit(f"no {name} in {folder}: apt-get install dataset-fashion-mnist")
    images = load(f"{kind}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
    return images, load(f"{kind}-labels-idx1-ubyte", 8)


def rank_main(options):
    import torch
    import torch.distributed as dist
    from torch import nn

    import sinew_torch
    torch.set_num_threads(1)
    dist.init_process_group("sinew")
    rank, size = dist.get_rank(), dist.get_world_size()
    images, labels = (torch.from_numpy(a.copy()) for a in read(options.data, "train"))
    test_images, test_labels = (torch.from_numpy(a.copy()) for a in read(options.data, "t10k"))
    torch.manual_seed(options.seed)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)))
    hook = None
    if options.hook == "oktopk":
        hook = sinew_torch.hooks.oktopk(density=options.density, warmup=options.warmup)
        hook.register(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    order = torch.Generator().manual_seed(options.seed)
    densities, sent = [], 0
    for step in range(options.steps):
        chosen = torch.randint(0, len(images), (options.batch * size,), generator=order)
        mine = chosen[rank::size]
        inputs = images[mine].float().div_(255).sub_(0.286).div_(0.353)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels[mine].long()).backward()
        optimizer.step()
        scheduler.step()
        if hook is not None:
            reports = hook.reports()
            sent += sum(one["sent_bytes"] for one in reports)
            if step > options.warmup + 1:
                densities.append(sum(r["items"] for r in reports) /
                                 sum(r["target_items"] for r in reports))
    right = 0
    with torch.no_grad():
        for first in range(0, options.tested, 500):
            inputs = test_images[first:first + 500].float().div_(255).sub_(0.286).div_(0.353)
            right += int((model.module(inputs).argmax(1) == test_labels[first:first + 500]).sum())
    if rank == 0:
        print(json.dumps({"accuracy": 100 * right / options.tested, "sent_bytes": sent,
                          "dense_bytes": 4 * 1_199_882 * options.steps,
                          "least": min(densities, default=1), "most": max(densities, default=1)}))
    dist.barrier()
    dist.destroy_process_group()


def run(options, hook, seed):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, os.path.abspath(__file__), "--rank", "--hook", hook,
               "--seed", str(seed), "--steps", str(options.steps), "--batch", str(options.batch),
               "--lr", str(options.lr), "--density", str(options.density),
               "--warmup", str(options.warmup), "--data", options.data,
               "--tested", str(options.tested)]
    ranks = [subprocess.Popen(command, text=True, stdout=subprocess.PIPE if r == 0 else None,
                              env=dict(os.environ, RANK=str(r), WORLD_SIZE="2", LOCAL_RANK=str(r),
                                       LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                                       MASTER_PORT=str(port), OMP_NUM_THREADS="1",
                                       OPENBLAS_NUM_THREADS="1")) for r in range(2)]
    out = ranks[0].communicate()[0]
    if any(rank.wait() != 0 for rank in ranks):
        sys.exit("a rank failed")
    return json.loads(out.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=32, help="of each rank")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--density", type=float, default=0.02)
    parser.add_argument("--warmup", type=int, default=128)
    parser.add_argument("--tested", type=int, default=10_000)
    parser.add_argument("--data", default=FOLDER)
    parser.add_argument("-o", "--output")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--hook", default="dense", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        return rank_main(options)
    rows = []
    for seed in range(1, options.seeds + 1):
        row = {"seed": seed, **{h: run(options, h, seed) for h in ("dense", "oktopk")}}
        rows.append(row)
        sparse = row["oktopk"]
        print(f"seed {seed}: dense {row['dense']['accuracy']:.2f} %, oktopk "
              f"{sparse['accuracy']:.2f} %, items {sparse['least']:.2f} to {sparse['most']:.2f} of "
              f"the target, {sparse['sent_bytes'] / 1e6:.0f} MB a rank "
              f"(a dense gradient each step: {sparse['dense_bytes'] / 1e6:.0f} MB)", flush=True)
        if options.output:
            with open(options.output, "w", encoding="utf-8") as file:
                json.dump({"schema": "sinew-torch-convergence", "version": 1,
                           "steps": options.steps, "batch": options.batch, "rows": rows}, file,
                          indent=1)
                file.write("\n")
    apart = statistics.mean(r["dense"]["accuracy"] - r["oktopk"]["accuracy"] for r in rows)
    print(f"mean difference over {len(rows)} seeds: {apart:.2f} points")


if __name__ == "__main__":
    main()
