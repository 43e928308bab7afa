#!/usr/bin/env python3
"""Allreduces of ranks on two hosts joined by a slow link: link.py BUILD [options].

Two network namespaces, joined by a veth pair that tbf limits each way, with as many ranks in both.
Prints the median time of a call beside what a ring over all ranks cannot beat: 2 (p - 1) / p of the
bytes, over a link at its full rate. Results are compared with what they must be. Needs root, ip, tc
and the Python package in BUILD; leaves nothing.
"""

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "training"))
from slow_link import PORT, TwoHosts

LAYOUTS = (("tcp", 1), ("auto", 1), ("auto", 2), ("auto", 4))
SIZES = (16 << 20, 64 << 20)


def be_a_rank(calls):
    """Times calls of every size; the last rank to end counts."""
    import numpy
    import sinew
    comm = sinew.connect()
    found = {}
    for size in SIZES:
        data = numpy.empty(size // 4, numpy.float32)
        took = numpy.empty(1, numpy.float64)
        times = []
        for call in range(calls + 1):
            data[:] = comm.rank + call
            comm.barrier()
            begin = time.perf_counter()
            comm.allreduce(data)
            took[0] = time.perf_counter() - begin
            comm.allreduce(took, op="max")
            times.append(took[0])
            right = comm.size * (comm.size - 1) / 2 + comm.size * call
            if not (data == right).all():
                sys.exit(f"rank {comm.rank}: wrong sum in call {call} of {size} bytes")
        found[size] = statistics.median(times[1:])
    if comm.rank == 0:
        print(json.dumps(found))


def run(hosts, options, transport, here):
    token = secrets.token_hex(32)
    ranks = []
    for rank in range(2 * here):
        environment = {
            **os.environ, "PYTHONPATH": str(options.build / "python"), "SINEW_TRANSPORT": transport,
            "SINEW_RANK": str(rank), "SINEW_SIZE": str(2 * here),
            "SINEW_LOCAL_RANK": str(rank % here), "SINEW_LOCAL_SIZE": str(here),
            "SINEW_RENDEZVOUS": f"tcp://10.78.0.1:{PORT}", "SINEW_TOKEN": token}
        ranks.append(subprocess.Popen(
            ["ip", "netns", "exec", hosts.names[rank // here], options.python, __file__, "--rank",
             "--calls", str(options.calls)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    try:
        said = [rank.communicate(timeout=options.limit) for rank in ranks]
    finally:
        for rank in ranks:  # that are still there: somebody did not come
            rank.kill()
    if any(rank.returncode for rank in ranks):
        sys.exit("\n".join(error for _, error in said))
    return json.loads(said[0][0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, nargs="?", help="the build tree, e.g. build/release")
    parser.add_argument("--gbit", type=float, default=1, help="of the link, each way")
    parser.add_argument("--calls", type=int, default=7, help="timed, of each size")
    parser.add_argument("--python", default="/usr/bin/python3", help="what the package is built for")
    parser.add_argument("--limit", type=int, default=120, help="seconds for one group of ranks")
    parser.add_argument("--json", help="file for all figures")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        be_a_rank(options.calls)
        return
    if os.geteuid() != 0:
        sys.exit("link: needs root, for network namespaces")
    if options.build is None or not (options.build / "python" / "sinew").is_dir():
        sys.exit("link: needs a build tree with the Python package, e.g. build/release")
    options.build = options.build.resolve()
    results = []
    print("transport  ranks       MiB        ms  ring at full rate    share")
    with TwoHosts(f"{options.gbit:g}gbit") as hosts:
        for transport, here in LAYOUTS:
            ranks = 2 * here
            for size, seconds in run(hosts, options, transport, here).items():
                bound = 2 * (ranks - 1) / ranks * int(size) / (options.gbit * 1e9 / 8)
                results.append({"transport": transport, "ranks": ranks, "bytes": int(size),
                                "ms": round(seconds * 1e3, 3), "ring_ms": round(bound * 1e3, 3)})
                print(f"{transport:<9} 2 x {here:>2} {int(size) >> 20:>9} {seconds * 1e3:>9.1f} "
                      f"{bound * 1e3:>18.1f} {bound / seconds:>8.1%}")
    if options.json:
        document = {"gbit": options.gbit, "calls": options.calls, "results": results}
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
