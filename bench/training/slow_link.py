#!/usr/bin/env python3
"""`sinew train` on two hosts joined by a slow link: slow_link.py SINEW [options].

Two network namespaces, joined by a veth pair that tbf limits each way, with workers in both. Every
round runs all contenders, in an order that changes from round to round: gradients dense in one
bucket, dense in several buckets that overlap the backward pass, and Ok-Topk. Prints a line for each
and writes all rounds as JSON. Needs root, ip and tc; leaves nothing.
"""

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
from pathlib import Path

PORT = 24680


def contenders(options):
    """name -> what the command line has besides."""
    few = ["--bucket", "1G"]
    if options.sweep:
        return {f"dense, {size}": ["--bucket", size] for size in options.sweep.split(",")}
    return {
        "dense, one bucket": few,
        "dense, buckets": ["--bucket", options.bucket],
        "oktopk": few + ["--compress", f"oktopk:{options.density}"],
    }


class TwoHosts:
    """Network namespaces 0 and 1, at 10.78.0.1 and 10.78.0.2."""

    def __init__(self, rate):
        self.names = [f"sinew-{side}-{os.getpid()}" for side in "ab"]
        for name in self.names:
            self.call("netns", "add", name)
        self.call("-n", self.names[0], "link", "add", "veth0", "type", "veth", "peer", "name",
                  "veth0", "netns", self.names[1])
        for number, name in enumerate(self.names, 1):
            self.call("-n", name, "address", "add", f"10.78.0.{number}/24", "dev", "veth0")
            self.call("-n", name, "link", "set", "veth0", "up")
            self.call("-n", name, "link", "set", "lo", "up")
            subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "veth0", "root", "tbf", "rate",
                            rate, "burst", "64kb", "limit", "4mb"], check=True)

    @staticmethod
    def call(*words):
        subprocess.run(["ip", *words], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in self.names:  # with the first goes one end of the pair, and so the other
            subprocess.run(["ip", "netns", "del", name], check=False)


def train(hosts, options, words):
    """One run; what rank 0 says at its end."""
    here = options.workers
    size = 2 * here
    token = secrets.token_hex(32)
    command = [options.sinew, "train", "--model", options.model, "--data", options.data, "--batch",
               str(options.batch), "--precision", options.precision, "--steps",
               str(options.steps), "--threads", "1", "--no-evaluate",
               "--log", "silent", "--json", "--timeout", "60", *words]
    ranks = []
    for rank in range(size):
        environment = {
            **os.environ, "SINEW_RANK": str(rank), "SINEW_SIZE": str(size),
            "SINEW_LOCAL_RANK": str(rank % here), "SINEW_LOCAL_SIZE": str(here),
            "SINEW_RENDEZVOUS": f"tcp://10.78.0.1:{PORT}", "SINEW_TOKEN": token}
        ranks.append(subprocess.Popen(
            ["ip", "netns", "exec", hosts.names[rank // here], *command], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    try:
        said = [rank.communicate(timeout=options.limit) for rank in ranks]
    finally:
        for rank in ranks:  # that are still there: somebody did not come
            rank.kill()
    if any(rank.returncode for rank in ranks):
        sys.exit("\n".join(error for _, error in said))
    return json.loads(said[0][0].splitlines()[-1])


def kept(result):
    """The figures of one run that are worth keeping."""
    communication = result["comm"]
    steps = result["steps"]
    per_step = {name: 1e3 * communication[name] / steps
                for name in ("exposed_s", "hidden_s", "waiting_s")}
    # A run of ten steps or fewer has no rate without its first ten.
    return {"steps_per_s": result["steady_steps_per_s"] or result["steps_per_s"], "buckets": result["buckets"],
            "exposed_ms": per_step["exposed_s"], "hidden_ms": per_step["hidden_s"],
            "compute_ms": 1e3 * result["compute_s"] / steps,
            "sent_bytes_per_worker_and_step":
                communication["bytes_sent"] / result["workers"] / steps,
            "density": result["density_mean"]}


def median(runs, field):
    return statistics.median(run[field] for run in runs)


def compare(rounds):
    """Ok-Topk beside the faster of the two dense ones."""
    best = max(list(rounds)[:2], key=lambda name: median(rounds[name], "steps_per_s"))
    ratios = [a["steps_per_s"] / b["steps_per_s"] for a, b in zip(rounds["oktopk"], rounds[best])]
    print(f"Ok-Topk against {best}: {statistics.median(ratios):.2f}x "
          f"({min(ratios):.2f} to {max(ratios):.2f} in a round)")
    return {"against": best, "ratios": ratios}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sinew", help="the program")
    parser.add_argument("--rate", default="1gbit", help="of the link, each way")
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--data", default="fashion:4096")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--precision", default="f32", help="what all contenders compute in")
    parser.add_argument("--workers", type=int, default=2, help="on each host")
    parser.add_argument("--density", default="0.01")
    parser.add_argument("--bucket", default="1M", help="where buckets overlap")
    parser.add_argument("--sweep", help="dense with buckets of these sizes instead: 1M,25M,1G")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=120, help="seconds for one run")
    parser.add_argument("--json", help="file for all rounds")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("slow_link: needs root, for network namespaces")
    commands = contenders(options)
    rounds = {name: [] for name in commands}
    with TwoHosts(options.rate) as hosts:
        for number in range(options.rounds):
            names = list(commands) if number % 2 == 0 else list(commands)[::-1]
            for name in names:
                rounds[name].append(kept(train(hosts, options, commands[name])))
    print("contender           buckets  steps/s  compute ms  hidden ms  exposed ms  KB sent")
    for name, runs in rounds.items():
        print(f"{name:<19} {runs[0]['buckets']:>7} {median(runs, 'steps_per_s'):>8.1f} "
              f"{median(runs, 'compute_ms'):>11.1f} {median(runs, 'hidden_ms'):>10.1f} "
              f"{median(runs, 'exposed_ms'):>11.1f} "
              f"{median(runs, 'sent_bytes_per_worker_and_step') / 1e3:>8.0f}")
    document = {"options": {name: value for name, value in vars(options).items()
                            if name not in ("sinew", "json")}, "rounds": rounds}
    if not options.sweep:
        document.update(compare(rounds))
    if options.json:
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
