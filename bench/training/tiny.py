#!/usr/bin/env python3
"""`tiny` with ten workers, where a step is nearly all latency: tiny.py SINEW [options].

Every batch is followed by an update that all workers share. Each round runs all contenders:
transports, and how much is logged (--log verbose writes a line a step into a file). Prints medians
of batches/s of all workers, and writes all runs as JSON.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CONTENDERS = {  # name -> transport, log
    "tcp": ("tcp", "silent"),
    "tcp, --log normal": ("tcp", "normal"),
    "tcp, --log verbose": ("tcp", "verbose"),
    "shm": ("shm", "silent"),
}


def run(options, transport, log):
    command = [options.sinew, "train", "--model", "tiny", "-p", str(options.workers), "--batch",
               "32", "--threads", "1", "--seconds", str(options.seconds), "--transport", transport,
               "--log", log, "--no-evaluate", "--json"]
    with tempfile.TemporaryFile() as talk:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=talk, text=True, check=False)
        if done.returncode != 0:
            talk.seek(0)
            sys.exit(talk.read().decode())
    result = json.loads(done.stdout.splitlines()[-1])
    seconds = result["seconds"]
    return {"batches_per_s": result["samples_per_s"] / 32, "steps": result["steps"],
            "sent_bytes_per_s": result["comm"]["bytes_sent"] / seconds,
            "compression_ratio": result["compression_ratio"],
            "compute_us": 1e6 * result["compute_s"] / result["steps"],
            "exposed_us": 1e6 * result["comm"]["exposed_s"] / result["steps"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sinew", help="the program")
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=list(CONTENDERS), choices=CONTENDERS)
    parser.add_argument("--json", help="file for all runs")
    options = parser.parse_args()
    names = options.only
    runs = {name: [] for name in names}
    for number in range(options.rounds):
        for name in names if number % 2 == 0 else names[::-1]:
            runs[name].append(run(options, *CONTENDERS[name]))
    print("contender            batches/s  lowest  highest  compute us  exposed us  sent MB/s")
    for name, list_of in runs.items():
        rates = [one["batches_per_s"] for one in list_of]
        print(f"{name:<20} {statistics.median(rates):>9.0f} {min(rates):>7.0f} {max(rates):>8.0f} "
              f"{list_of[0]['compute_us']:>11.0f} {list_of[0]['exposed_us']:>11.0f} "
              f"{list_of[0]['sent_bytes_per_s'] / 1e6:>10.2f}")
    if options.json:
        document = {"workers": options.workers, "seconds": options.seconds, "runs": runs}
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
