#!/usr/bin/env python3
"""What the profiler adds to a call: cost.py BUILD openmpi|mpich

With --most N it only counts the instructions of an 8-byte Allreduce on MPI_COMM_SELF, and ends with
status 5 when more than N are added.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run(words, preload, folder):
    environment = dict(os.environ, SINEW_PROFILE_DIR=str(folder), OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if preload:
        environment["LD_PRELOAD"] = str(preload)
    ran = subprocess.run([str(word) for word in words], env=environment, capture_output=True,
                         text=True, timeout=300)
    if ran.returncode != 0:
        sys.exit(f"{words}: status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran


def instructions(program, routine, preload, folder):
    """User instructions a call, in all libraries, what the trace costs at the end included."""
    counted = []
    for count in (1000, 41000):
        out = Path(folder) / "cachegrind.out"
        ran = run(["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={out}",
                   program, routine, count], preload, folder)
        found = re.search(r"I\s+refs:\s+([\d,]+)", ran.stderr)
        counted.append(int(found[1].replace(",", "")))
    return (counted[1] - counted[0]) / 40000


def nanoseconds(program, routine, preload, folder, ranks, kind):
    words = [program, routine, 200000 if ranks == 1 else 20000]
    if ranks > 1:
        extra = ["--oversubscribe"] if kind == "openmpi" else []
        words = [f"mpirun.{kind}", *extra, "-n", ranks, *words]
    time = float(run(words, preload, folder).stdout)
    for trace in Path(folder).glob("*.trace"):
        trace.unlink()
    return time


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("kind", choices=["openmpi", "mpich"])
    parser.add_argument("--most", type=float, default=None)
    parser.add_argument("--rounds", type=int, default=11)
    wanted = parser.parse_args()
    if not shutil.which("valgrind"):
        print("no valgrind here: instructions are not counted")
        sys.exit(77)
    library = Path(wanted.build).resolve() / "lib" / "libsinew-profile.so"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "calls"
        subprocess.run([f"mpicc.{wanted.kind}", "-O2", "-o", program, HERE / "calls.c"], check=True)
        added = 0
        print(f"{wanted.kind}: user instructions a call (cachegrind)")
        for routine in ("Allreduce", "Comm_rank") if wanted.most is None else ("Allreduce",):
            bare = instructions(program, routine, None, folder)
            with_it = instructions(program, routine, library, folder)
            added = with_it - bare
            print(f"  {routine:<10} alone {bare:8.1f}   profiled {with_it:8.1f}   "
                  f"added {added:6.1f}")
        if wanted.most is None:
            print(f"{wanted.kind}: nanoseconds a call, median of {wanted.rounds} interleaved runs")
            for routine, ranks in (("Allreduce", 1), ("Comm_rank", 1), ("Allreduce_world", 2)):
                times = {None: [], library: []}
                for _ in range(wanted.rounds):
                    for preload, list_of in times.items():
                        list_of.append(nanoseconds(program, routine, preload, folder, ranks,
                                                   wanted.kind))
                bare, with_it = (statistics.median(list_of) for list_of in times.values())
                print(f"  {routine:<15} alone {bare:8.1f}   profiled {with_it:8.1f}   added "
                      f"{with_it - bare:6.1f}   ratio {with_it / bare:.3f}")
        sys.exit(5 if wanted.most is not None and added > wanted.most else 0)


if __name__ == "__main__":
    main()
