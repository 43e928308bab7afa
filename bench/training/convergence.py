#!/usr/bin/env python3
"""Accuracy after equal steps, dense and compressed, over several seeds: convergence.py SINEW [options].

Runs what is not yet in the JSON file, so that it can be stopped and started again. Prints a line for
each seed, then the mean difference with its 95 % interval (Student's t over the seeds).
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

# Two-sided 95 % of Student's t, by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306,
           9: 2.262}


def command(options, seed, compressed):
    words = [options.sinew, "train", "--model", options.model, "--data", options.data, "-p",
             str(options.workers), "--threads", "1", "--batch", str(options.batch), "--steps",
             str(options.steps), "--lr", str(options.lr), "--lr-schedule", options.schedule,
             "--seed", str(seed), "--log", "silent", "--json"]
    if compressed:
        words += ["--compress", options.compress, "--warmup", str(options.warmup)]
    return words


def accuracy(options, seed, compressed):
    done = subprocess.run(command(options, seed, compressed), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    result = json.loads(done.stdout.splitlines()[-1])
    return {name: result[name] for name in ("accuracy", "test_loss", "loss", "density_mean",
                                            "compression_ratio", "seconds")}


def interval(values):
    """Mean and half of its 95 % interval."""
    spread = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values), STUDENT[len(values) - 1] * spread


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sinew", help="the program")
    parser.add_argument("--model", default="cnn")
    parser.add_argument("--data", default="fashion")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--schedule", default="cosine")
    parser.add_argument("--compress", default="oktopk:0.02")
    parser.add_argument("--warmup", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most", type=int, default=10 ** 6, help="runs of this call")
    parser.add_argument("--json", default="convergence.json", help="what is there already, too")
    options = parser.parse_args()
    path = Path(options.json)
    settings = {name: value for name, value in vars(options).items()
                if name not in ("sinew", "seeds", "json", "most")}
    document = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if document.get("settings", settings) != settings:
        sys.exit(f"{path} is of other settings: {document['settings']}")
    document.setdefault("settings", settings)
    runs = document.setdefault("runs", {})
    left = options.most
    for seed in range(1, options.seeds + 1):
        for kind in ("dense", "compressed"):
            run = runs.setdefault(str(seed), {})
            if kind in run or left == 0:
                continue
            left -= 1
            run[kind] = accuracy(options, seed, kind == "compressed")
            path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    whole = {seed: run for seed, run in runs.items() if len(run) == 2}
    print("seed  dense %  compressed %  difference")
    losses = []
    for seed, run in whole.items():
        dense, compressed = (100 * run[kind]["accuracy"] for kind in ("dense", "compressed"))
        losses.append(dense - compressed)
        print(f"{seed:>4} {dense:>8.2f} {compressed:>13.2f} {losses[-1]:>11.2f}")
    if len(losses) > 1:
        mean, half = interval(losses)
        print(f"dense is better by {mean:.2f} +- {half:.2f} points (95 %, {len(losses)} seeds)")
        document["points_lost"] = {"mean": mean, "interval_95": half, "seeds": len(losses)}
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
