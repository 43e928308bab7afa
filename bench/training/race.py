#!/usr/bin/env python3
"""`sinew train` beside DistributedDataParallel over Gloo, in turns: race.py SINEW [options].

Same model, batch, threads (one a worker) and machine; one run of each in every round, and the order
changes from round to round. Prints a line for each worker count: medians of steps/s, their ratio,
and the lowest and highest ratio of a round.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

DDP = Path(__file__).with_name("ddp.py")


def last_json(output):
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    sys.exit(f"no result in:\n{output}")


def run(command, environment):
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stderr}")
    return last_json(done.stdout)["steady_steps_per_s"]


def contenders(options, workers):
    """name -> command, the same work for each."""
    steps, batch = str(options.steps), str(options.batch)
    sinew = [options.sinew, "train", "--model", options.model, "-p", str(workers), "--steps", steps,
             "--batch", batch, "--threads", "1", "--no-evaluate", "--log", "silent", "--json"]
    if options.model != "tiny":
        sinew += ["--data", "fashion:4096"]
    ddp = [options.sinew, "launch", "-n", str(workers), "--no-label", "--", options.python,
           str(DDP), options.model, steps, batch]
    return {"sinew": sinew + options.with_options, "ddp": ddp}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sinew", help="the program")
    parser.add_argument("--model", default="mlp", choices=["tiny", "mlp", "cnn"])
    parser.add_argument("--workers", default="2,4,8")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has torch")
    parser.add_argument("--with-options", default=[], type=str.split, help="more for sinew train")
    options = parser.parse_args()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    print("model workers sinew_steps_per_s ddp_steps_per_s ratio lowest highest")
    for workers in map(int, options.workers.split(",")):
        commands = contenders(options, workers)
        rates = {name: [] for name in commands}
        for number in range(options.rounds):
            names = list(commands) if number % 2 == 0 else list(commands)[::-1]
            for name in names:
                rates[name].append(run(commands[name], environment))
        ratios = [a / b for a, b in zip(rates["sinew"], rates["ddp"])]
        a, b = statistics.median(rates["sinew"]), statistics.median(rates["ddp"])
        print(f"{options.model} {workers} {a:.1f} {b:.1f} {a / b:.2f} {min(ratios):.2f} "
              f"{max(ratios):.2f}", flush=True)


if __name__ == "__main__":
    main()
