#!/usr/bin/env python3
"""The two arrangements of `sinew train` in turns: server.py SINEW [options].

Workers that add up their gradients (allreduce), and workers of a server (--mode server) that waits
for all of them, or lets them run ahead (--stale). Same model, data, batch, steps and threads. Prints
a line for each: medians of batches/s over all workers, bytes sent a batch by everybody, the loss at
the end, and resident memory of all workers. Writes all runs as JSON.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def run(command):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, "-o", folder], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}:\n{done.stderr}")
        return json.loads((Path(folder) / "result.json").read_text())


def figures(result):
    workers = result["per_worker"]
    batches = sum(worker["batches"] for worker in workers)
    sent = result["comm"]["bytes_sent"] + result["comm"].get("server_bytes_sent", 0)
    return {"batches_per_s": batches / result["seconds"], "bytes_per_batch": sent / batches,
            "loss": result["loss"], "ratio": result["compression_ratio"],
            "memory_mb": sum(worker["resident_mb"] for worker in workers)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sinew", help="the program")
    parser.add_argument("--model", default="mlp", choices=["tiny", "mlp", "cnn"])
    parser.add_argument("--workers", default="2,4")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seconds", type=float, help="instead of steps")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--density", default="0.02")
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="file for all runs")
    options = parser.parse_args()
    contenders = {
        "allreduce": [],
        "allreduce, sparse": ["--compress", f"oktopk:{options.density}"],
        "server": ["--mode", "server"],
        "server, sparse": ["--mode", "server", "--compress", f"topka:{options.density}"],
        "server, stale 4": ["--mode", "server", "--stale", "4"],
    }
    everything = {}
    length = (["--seconds", str(options.seconds)] if options.seconds
              else ["--steps", str(options.steps)])
    print(f"{'model':<6} {'workers':>7} {'arrangement':<18} {'batches/s':>9} {'B/batch':>10} "
          f"{'ratio':>6} {'loss':>7} {'MB':>6}")
    for workers in options.workers.split(","):
        common = [options.sinew, "train", "--model", options.model, "-p", workers, *length,
                  "--batch", str(options.batch), "--threads", "1", "--log", "silent",
                  "--transport", options.transport, "--no-evaluate", "--json"]
        if options.model != "tiny":
            common += ["--data", "fashion:4096"]
        seen = {name: [] for name in contenders}
        for number in range(options.rounds):
            names = list(contenders) if number % 2 == 0 else list(contenders)[::-1]
            for name in names:
                seen[name].append(figures(run(common + contenders[name])))
        for name, runs in seen.items():
            median = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
            print(f"{options.model:<6} {workers:>7} {name:<18} {median['batches_per_s']:>9.1f} "
                  f"{median['bytes_per_batch']:>10.0f} {median['ratio']:>6.1f} "
                  f"{median['loss']:>7.4f} {median['memory_mb']:>6.0f}", flush=True)
        everything[workers] = seen
    if options.json:
        settings = {name: value for name, value in vars(options).items()
                    if name not in ("sinew", "json", "workers")}
        document = {"options": settings, "workers": everything}
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
