#!/usr/bin/env python3
"""What the profiler adds to a call: cost.py BUILD openmpi|mpich...

Counts user instructions (cachegrind) and times calls, with and without the profiler in turns.
With --most N it only counts those of an 8-byte Allreduce on MPI_COMM_SELF, and ends with status 5
when more than N are added. --json FILE keeps the figures; what it held of other MPIs and of a part
that was not measured (--only) stays.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CASES = {  # what calls.c is told: (what it is, ranks)
    "Allreduce": ("8-byte Allreduce on MPI_COMM_SELF", 1),
    "Comm_rank": ("Comm_rank", 1),
    "Allreduce_world": ("8-byte Allreduce, 2 ranks", 2),
}


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


def both(measure, library):
    return {"alone": measure(None), "profiled": measure(library)}


def timed(program, routine, library, folder, ranks, kind, rounds):
    """Medians of runs that take turns."""
    times = {None: [], library: []}
    for _ in range(rounds):
        for preload, found in times.items():
            found.append(nanoseconds(program, routine, preload, folder, ranks, kind))
    return both(lambda preload: statistics.median(times[preload]), library)


def show(kind, what, unit, found):
    print(f"{kind:<8} {what:<34} {unit}: {found['alone']:8.1f}, profiled {found['profiled']:8.1f}, "
          f"added {found['profiled'] - found['alone']:6.1f}")


def measure(wanted, kind, folder):
    """The figures of one MPI, by case."""
    library = Path(wanted.build).resolve() / "lib" / "libsinew-profile.so"
    program = Path(folder) / f"calls-{kind}"
    subprocess.run([f"mpicc.{kind}", "-O2", "-o", program, HERE / "calls.c"], check=True)
    results = {}
    for routine, (what, ranks) in CASES.items():
        result = results[what] = {}
        if ranks == 1 and wanted.only != "times" and (wanted.most is None or routine == "Allreduce"):
            result["instructions"] = both(
                lambda preload, r=routine: instructions(program, r, preload, folder), library)
            show(kind, what, "instructions", result["instructions"])
        if wanted.most is None and wanted.only != "instructions":
            result["ns"] = timed(program, routine, library, folder, ranks, kind, wanted.rounds)
            show(kind, what, "ns", result["ns"])
    return results


def keep(path, kind, results):
    kept = json.loads(path.read_text()) if path.exists() else {"results": {}}
    for what, result in results.items():
        kept["results"].setdefault(kind, {}).setdefault(what, {}).update(result)
    path.write_text(json.dumps(kept, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("kinds", nargs="+", choices=["openmpi", "mpich"])
    parser.add_argument("--most", type=float, default=None)
    parser.add_argument("--only", choices=["instructions", "times"], default=None)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", type=Path, default=None)
    wanted = parser.parse_args()
    if not shutil.which("valgrind") and wanted.only != "times":
        print("no valgrind here: instructions are not counted")
        sys.exit(77)
    for kind in wanted.kinds:
        with tempfile.TemporaryDirectory() as folder:
            results = measure(wanted, kind, folder)
        if wanted.json:
            keep(wanted.json, kind, results)
        if wanted.most is not None:
            found = results[CASES["Allreduce"][0]]["instructions"]
            if found["profiled"] - found["alone"] > wanted.most:
                sys.exit(5)


if __name__ == "__main__":
    main()
