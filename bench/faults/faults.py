#!/usr/bin/env python3
"""Hurts jobs of 4 ranks in the same ways, on Sinew and on the peers that are installed, and prints
one table: what the ranks get, after how long, who is named, what is left behind.

usage: faults.py [--build BUILD] [--trials N] [--systems A,B] [--cases A,B] [--json FILE] [--write]
       faults.py --from FILE [--write]       the table of an earlier run

Every run is in namespaces of its own (processes, network, segments, /tmp) with a hard limit, and
whatever it leaves dies with them. Needs root or user namespaces; Python's standard library alone.
--write puts the table into docs/reliability.md. Exit: 0 done, 3 something is missing.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

from outcome import CASES, names, summarize
from table import print_table, write_page

HERE = pathlib.Path(__file__).resolve().parent
SYSTEMS = ["sinew-shm", "sinew-tcp", "gloo", "openmpi", "mpich"]
HARD_LIMIT_S = 60


def unshare():
    """The command that gives one its own place, or None."""
    flags = ["--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--propagation", "private"]
    for extra in ([], ["--user", "--map-root-user"]):
        command = ["unshare", *extra, *flags]
        if shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    return None


def available(build):
    found = []
    for system in SYSTEMS:
        program = build / "libexec" / "sinew" / f"sinew-fault-{system.split('-')[0]}"
        if program.exists():
            found.append(system)
        else:
            print(f"faults: {system} left out, {program.name} is not built", file=sys.stderr)
    return found


def run_one(place, build, system, case, elements, trial):
    """One job in a place of its own; what happened, as inside.py tells it."""
    command = [*place, sys.executable, str(HERE / "inside.py"), str(build), system, case,
               str(elements), str(trial)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=HARD_LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"failed": f"no end after {HARD_LIMIT_S} s"}
    if done.returncode != 0:
        return {"failed": done.stderr.strip()[-500:]}
    run = json.loads(done.stdout)
    if "said" in run:  # by the launcher; long, and full of names that are this machine's alone
        run["launcher_names"] = names(run.pop("said"), run["victim"])
    for fate in run.get("fates", {}).values():
        if fate["what"] == "error":
            fate["names"] = names(fate["text"], run["victim"])
            fate["text"] = fate["text"][:160]
        if "after_s" in fate:
            fate["after_s"] = round(fate["after_s"], 6)
    return run


def measure(arguments):
    place = unshare()
    if place is None:
        print("faults: no namespaces here (unshare needs root or user namespaces)", file=sys.stderr)
        sys.exit(3)
    build = pathlib.Path(arguments.build).resolve()
    systems = [s for s in available(build) if not arguments.systems or s in arguments.systems.split(",")]
    cases = arguments.cases.split(",") if arguments.cases else list(CASES)
    results = []
    for system in systems:
        for case in cases:
            kind = CASES[case]
            runs = [run_one(place, build, system, case, elements, trial)
                    for elements in kind.elements
                    for trial in range(kind.trials(arguments.trials))]
            results.append({"system": system, "case": case, "runs": runs})
            print(f"faults: {system}, {case}: {summarize(case, runs)}", file=sys.stderr)
    return {"results": results}


def merge(old, new):
    """What was measured again replaces what there was."""
    again = {(r["system"], r["case"]) for r in new["results"]}
    kept = [r for r in old["results"] if (r["system"], r["case"]) not in again]
    order = {s: i for i, s in enumerate(SYSTEMS)}
    return {"results": sorted(kept + new["results"], key=lambda r: order[r["system"]])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--trials", type=int, default=5, help="of kill and stop; half as many of each mismatch and size")
    parser.add_argument("--systems")
    parser.add_argument("--cases")
    parser.add_argument("--json", help="keep everything here; what is there and not measured now, stays")
    parser.add_argument("--from", dest="source")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.source:
        measured = json.loads(pathlib.Path(arguments.source).read_text())
    else:
        measured = measure(arguments)
        if arguments.json:
            path = pathlib.Path(arguments.json)
            if path.exists():
                measured = merge(json.loads(path.read_text()), measured)
            path.write_text(json.dumps(measured, indent=1) + "\n")
    if arguments.write:
        write_page(HERE.parent.parent / "docs" / "reliability.md", measured)
    else:
        print_table(measured)


if __name__ == "__main__":
    main()
