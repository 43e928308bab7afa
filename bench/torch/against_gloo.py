#!/usr/bin/env python3
"""sinew against gloo through torch, taking turns: bench/torch/against_gloo.py -o FILE.json

The collective itself (all_reduce, float32) at several sizes, and steps of DDP on a model: `mlp`
(1,201,290 parameters) on the host, or with --cuda a model of lstman4's size on a GPU that all
processes share. Each round starts a fresh group of each backend; figures are medians over rounds.
"""

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import time

SIZES = [8, 1 << 10, 64 << 10, 1 << 20, 16 << 20]
BACKENDS = ("sinew", "gloo")


def mlp(torch):
    nn = torch.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 384),
                         nn.ReLU(), nn.Linear(384, 10)), (784,), 10


def lstman4(torch):
    """Five LSTM layers of 800 over 1,312 features and a linear layer to 29 labels: 27.3 million
    parameters, where lstman4 has 27,569,568."""
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(1312, 800, 5, batch_first=True)
            self.last = nn.Linear(800, 29)

        def forward(self, x):
            return self.last(self.rnn(x)[0][:, -1])

    return Model(), (50, 1312), 29


def time_collective(torch, dist, sizes, seconds, device):
    """Median microseconds of a call, over calls that begin together."""
    result = {}
    for size in sizes:
        data = torch.ones(size // 4, device=device)
        for _ in range(3):
            dist.all_reduce(data)
        times = []
        end = time.perf_counter() + seconds
        more = torch.ones(1)
        while more.item() > 0:
            dist.barrier()
            for _ in range(5):
                begin = time.perf_counter()
                dist.all_reduce(data)
                if device != "cpu":
                    torch.cuda.synchronize()
                times.append(time.perf_counter() - begin)
            more.fill_(1.0 if time.perf_counter() < end else 0.0)
            dist.broadcast(more, 0)
        slowest = torch.tensor([statistics.median(times)], dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        result[str(size)] = slowest.item() * 1e6
    return result


def time_steps(torch, dist, name, batch, seconds, device):
    """Steps a second of synchronous SGD, as the slowest rank sees them."""
    torch.manual_seed(1)
    model, shape, labels = {"mlp": mlp, "lstman4": lstman4}[name](torch)
    model = model.to(device)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=0.9)
    inputs = torch.randn(batch, *shape, device=device)
    targets = torch.randint(0, labels, (batch,), device=device)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(ddp(inputs), targets).backward()
        optimizer.step()

    for _ in range(3):
        step()
    if device != "cpu":
        torch.cuda.synchronize()
    dist.barrier()
    begin = time.perf_counter()
    steps = 0
    more = torch.ones(1)
    while more.item() > 0:
        for _ in range(5):
            step()
        steps += 5
        if device != "cpu":
            torch.cuda.synchronize()
        more.fill_(1.0 if time.perf_counter() - begin < seconds else 0.0)
        dist.broadcast(more, 0)
    return steps / (time.perf_counter() - begin)


def rank_main(options):
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    if options.backend == "sinew":
        import sinew_torch  # noqa: F401
    dist.init_process_group(options.backend)
    device = "cuda" if options.cuda else "cpu"
    result = {}
    if options.sizes:
        result["allreduce_us"] = time_collective(torch, dist, options.sizes, options.seconds,
                                                 device)
    if options.model != "none":
        result["steps_per_s"] = time_steps(torch, dist, options.model, options.batch,
                                           options.step_seconds, device)
    if dist.get_rank() == 0:
        print(json.dumps(result))
    dist.barrier()
    dist.destroy_process_group()


def start_ranks(script, ranks, words):
    """What rank 0 of a group of processes prints last, as JSON."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, os.path.abspath(script), "--rank", *map(str, words)]
    processes = []
    for rank in range(ranks):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank),
                           LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1",
                           MASTER_PORT=str(port), OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        processes.append(subprocess.Popen(command, env=environment, text=True,
                                          stdout=subprocess.PIPE if rank == 0 else None))
    out = processes[0].communicate()[0]
    for rank, process in enumerate(processes):
        if process.wait() != 0:
            sys.exit(f"rank {rank} of {' '.join(command)} failed")
    return json.loads(out.strip().splitlines()[-1])


def run_group(options, backend, ranks):
    words = ["--backend", backend, "--seconds", options.seconds, "--step-seconds",
             options.step_seconds, "--model", options.model, "--batch", options.batch, "--sizes",
             *options.sizes]
    if options.cuda:
        words.append("--cuda")
    return start_ranks(__file__, ranks, words)


def median_ratio(rounds, key, size=None):
    """Of gloo's time to ours, or of our rate to gloo's: above 1 is faster."""
    ratios = []
    for one in rounds:
        ours, theirs = one["sinew"][key], one["gloo"][key]
        ratios.append(theirs[size] / ours[size] if size else ours / theirs)
    return statistics.median(ratios)


def print_table(ranks, rounds):
    def middle(backend, key, size=None):
        return statistics.median(one[backend][key][size] if size else one[backend][key]
                                 for one in rounds)
    print(f"{ranks} ranks, {len(rounds)} rounds, medians")
    for size in rounds[0]["sinew"].get("allreduce_us", {}):
        print(f"  all_reduce {int(size):>9} B  sinew {middle('sinew', 'allreduce_us', size):10.1f}"
              f" us  gloo {middle('gloo', 'allreduce_us', size):10.1f} us  "
              f"x{median_ratio(rounds, 'allreduce_us', size):.2f}")
    if "steps_per_s" in rounds[0]["sinew"]:
        print(f"  steps/s           sinew {middle('sinew', 'steps_per_s'):10.2f}     gloo "
              f"{middle('gloo', 'steps_per_s'):10.2f}     x{median_ratio(rounds, 'steps_per_s'):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="bytes")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each size and group")
    parser.add_argument("--step-seconds", type=float, default=1.5)
    parser.add_argument("--model", default="mlp", choices=["mlp", "lstman4", "none"])
    parser.add_argument("--batch", type=int, default=64, help="of each rank")
    parser.add_argument("--cuda", action="store_true", help="tensors on the GPU")
    parser.add_argument("-o", "--output", help="a JSON file")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--backend", default="sinew", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        return rank_main(options)
    import torch
    document = {"schema": "sinew-torch-bench", "version": 1, "torch": torch.__version__,
                "cores": os.cpu_count(), "machine": platform.machine(),
                "device": torch.cuda.get_device_name(0) if options.cuda else "cpu",
                "model": options.model, "batch": options.batch, "groups": []}
    for ranks in options.ranks:
        rounds = []
        for number in range(options.rounds):
            order = BACKENDS if number % 2 == 0 else BACKENDS[::-1]
            one = {backend: run_group(options, backend, ranks) for backend in order}
            rounds.append(one)
        print_table(ranks, rounds)
        document["groups"].append({"ranks": ranks, "rounds": rounds})
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
