#!/usr/bin/env python3
"""`sinew train` beside DistributedDataParallel over Gloo, in turns: race.py SINEW [options].

Same model, batch, threads (one a worker) and machine; one run of each in every round, and the order
changes from round to round. Prints a line for each worker count: medians of steps/s, the median of
the rounds' ratios, and the lowest and highest of them. Writes all rounds as JSON.
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


def race(commands, rounds, environment):
    """name -> steps/s of each round."""
    rates = {name: [] for name in commands}
    for number in range(rounds):
        names = list(commands) if number % 2 == 0 else list(commands)[::-1]
        for name in names:
            rates[name].append(run(commands[name], environment))
    return rates


def keep(options, workers, figures):
    """Adds a worker count to the file, so that a long race can be run in parts."""
    path = Path(options.json)
    settings = {name: value for name, value in vars(options).items()
                if name not in ("sinew", "json", "workers", "python")}
    document = {"options": settings, "workers": {}}
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        if before["options"] == settings:
            document = before
    document["workers"][str(workers)] = figures
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


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
    parser.add_argument("--json", help="file for all rounds; worker counts it has stay")
    options = parser.parse_args()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    print("model  workers  sinew steps/s  DDP steps/s  ratio  lowest  highest")
    for workers in map(int, options.workers.split(",")):
        rates = race(contenders(options, workers), options.rounds, environment)
        ratios = [a / b for a, b in zip(rates["sinew"], rates["ddp"])]
        print(f"{options.model:<6} {workers:>7} {statistics.median(rates['sinew']):>14.1f} "
              f"{statistics.median(rates['ddp']):>12.1f} {statistics.median(ratios):>6.2f} "
              f"{min(ratios):>7.2f} {max(ratios):>8.2f}", flush=True)
        if options.json:
            keep(options, workers, {"steps_per_s": rates, "ratios": ratios})


if __name__ == "__main__":
    main()
