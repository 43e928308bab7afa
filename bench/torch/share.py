#!/usr/bin/env python3
"""What communication takes of a step of DDP over sinew: bench/torch/share.py -o FILE.json

The same model with four ways to end a step, taking turns: without any communication (no_sync), the
dense allreduce, and Ok-Topk that selects on the host or where the gradients are. Prints the share
of a step that each adds to computing, medians over rounds. --cuda: on a GPU that all processes
share, with a model of lstman4's size.
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

WAYS = ("alone", "dense", "oktopk on the host", "oktopk")


class Trainee:
    def __init__(self, torch, way, options, device):
        import sinew_torch
        torch.manual_seed(1)
        model, shape, labels = {"mlp": mlp, "lstman4": lstman4}[options.model](torch)
        self.torch, self.way, self.device = torch, way, device
        self.ddp = torch.nn.parallel.DistributedDataParallel(model.to(device))
        self.hook = None
        if way.startswith("oktopk"):
            self.hook = sinew_torch.hooks.oktopk(density=options.density,
                                                 on_device=way == "oktopk").register(self.ddp)
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
        return taken.item() * 1e3 / steps


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
        reports = {t.way: t.hook.reports() for t in trainees if t.hook}
        print(json.dumps({
            "rounds": rounds,
            "sent_bytes": {way: sum(r["sent_bytes"] for r in all) for way, all in reports.items()},
            "part_ms": {way: {part: sum(r["part_ns"][part] for r in all) / 1e6
                              for part in all[0]["part_ns"]} for way, all in reports.items()},
        }))
    dist.barrier()
    dist.destroy_process_group()


def table(result):
    """Milliseconds and share of each way, and how many times smaller than dense it is."""
    ms = {way: statistics.median(one[way] for one in result["rounds"]) for way in WAYS}
    share = {way: max(0.0, 1 - ms["alone"] / ms[way]) for way in WAYS}
    for way in WAYS:
        line = f"{way:20} {ms[way]:9.2f} ms a step, communication {share[way]:6.1%}"
        if way.startswith("oktopk") and share[way] > 0:
            line += f", {share['dense'] / share[way]:.1f}x less than dense"
        print(line)
    return {"step_ms": ms, "share": share}


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
    result |= table(result)
    result |= {"model": options.model, "ranks": options.ranks, "density": options.density,
               "device": "cuda" if options.cuda else "cpu"}
    if options.output:
        with open(options.output, "w") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
