#!/usr/bin/env python3
"""What communication takes of a step of DDP over sinew: bench/torch/share.py -o FILE.json

The same model with several ways to end a step, taking turns: without any communication (no_sync),
the dense allreduce as DDP has it and as it is without a device that ranks share, and Ok-Topk that
selects on the host or where the gradients are. Prints two shares of a step, medians over rounds:
what each way adds to computing alone, and, of ways that are hooks, what it spends in collectives,
waiting for others included. Dense gradients go in buckets of 25 MB, as they come, and compressed
ones in one of each kind. --cuda: on a GPU that all processes share.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from against_gloo import lstman4, mlp, start_ranks

WAYS = ("alone", "no hook", "dense", "oktopk on the host", "oktopk")


class Trainee:
    def __init__(self, torch, way, options, device):
        import sinew_torch
        torch.manual_seed(1)
        model, shape, labels = {"mlp": mlp, "lstman4": lstman4}[options.model](torch)
        self.torch, self.way, self.device = torch, way, device
        compressed = way.startswith("oktopk")
        self.ddp = torch.nn.parallel.DistributedDataParallel(
            model.to(device), bucket_cap_mb=1000 if compressed else 25)
        self.hook = None
        if compressed:
            self.hook = sinew_torch.hooks.oktopk(density=options.density,
                                                 on_device=way == "oktopk").register(self.ddp)
        elif way == "dense":
            self.hook = sinew_torch.hooks.dense().register(self.ddp)
        self.optimizer = torch.optim.SGD(self.ddp.parameters(), lr=0.01, momentum=0.9)
        self.inputs = torch.randn(options.batch, *shape, device=device)
        self.targets = torch.randint(0, labels, (options.batch,), device=device)

    def step(self):
        self.optimizer.zero_grad()
        with self.ddp.no_sync() if self.way == "alone" else contextlib.nullcontext():
            out = self.ddp(self.inputs)
            self.torch.nn.functional.cross_entropy(out, self.targets).backward()
        self.optimizer.step()

    def time(self, dist, steps):
        """Milliseconds of a step, as the slowest rank sees them."""
        self.step()
        if self.device != "cpu":
            self.torch.cuda.synchronize()
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        if self.device != "cpu":
            self.torch.cuda.synchronize()
        taken = self.torch.tensor([time.perf_counter() - begin], dtype=self.torch.float64)
        dist.all_reduce(taken, dist.ReduceOp.MAX)
        return {"step_ms": taken.item() * 1e3 / steps, **self.last_step()}

    def last_step(self):
        """What the last step of this rank sent, and where its time went."""
        reports = self.hook.reports() if self.hook else []
        parts = {part: sum(r["part_ns"][part] for r in reports) / 1e6
                 for part in (reports[0]["part_ns"] if reports else ["wire"])}
        return {"sent_bytes": sum(r["sent_bytes"] for r in reports), "part_ms": parts}


def rank_main(options):
    import torch
    import torch.distributed as dist
    import sinew_torch  # noqa: F401
    torch.set_num_threads(1)
    dist.init_process_group("sinew")
    device = "cuda" if options.cuda else "cpu"
    trainees = [Trainee(torch, way, options, device) for way in WAYS]
    for trainee in trainees:  # buckets are cut anew after the first step
        for _ in range(3):
            trainee.step()
    rounds = [{t.way: t.time(dist, options.steps) for t in trainees}
              for _ in range(options.rounds)]
    if dist.get_rank() == 0:
        print(json.dumps({"rounds": rounds}))
    dist.barrier()
    dist.destroy_process_group()


def table(result):
    """Milliseconds and shares of each way, and how many times smaller than dense's they are."""
    def middle(way, get):
        return statistics.median(get(one[way]) for one in result["rounds"])

    rows = {}
    for way in WAYS:
        step = middle(way, lambda one: one["step_ms"])
        rows[way] = {"step_ms": step, "added_share": max(0.0, 1 - rows["alone"]["step_ms"] / step)
                     if rows else 0.0,
                     "collectives_share": middle(way, lambda one: one["part_ms"]["wire"]
                                                 / one["step_ms"])}
    print(f"{'':20} {'a step':>10} {'added':>8} {'collectives':>12}")
    for way, row in rows.items():
        line = (f"{way:20} {row['step_ms']:7.2f} ms {row['added_share']:8.1%} "
                f"{row['collectives_share']:12.1%}")
        if way.startswith("oktopk"):
            less = [rows["dense"][key] / max(row[key], 1e-9)
                    for key in ("added_share", "collectives_share")]
            line += f"   {less[0]:.1f}x and {less[1]:.1f}x less"
        print(line)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--density", type=float, default=0.02)
    parser.add_argument("--model", choices=("mlp", "lstman4"), default="mlp")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        return rank_main(options)
    words = ["--rounds", options.rounds, "--steps", options.steps, "--batch", options.batch,
             "--density", options.density, "--model", options.model]
    if options.cuda:
        words.append("--cuda")
    result = start_ranks(__file__, options.ranks, words)
    result |= {"ways": table(result), "model": options.model, "ranks": options.ranks, "density": options.density,
               "device": "cuda" if options.cuda else "cpu"}
    if options.output:
        with open(options.output, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
