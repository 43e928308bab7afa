#!/usr/bin/env python3
"""Is the algorithm that the library chooses the fastest? bench/selection.py SINEW [-o FILE]

Times every algorithm and the library's own choice side by side over a grid of collectives, ranks and
sizes, and prints the median over rounds of the algorithm that was chosen against the best one's. The
call that chose for itself is timed too (`auto_us`): the same schedule by a plan of its own. Exit 5 when less than
95 % of the cells are within 1.15x, or one is beyond 1.5x. Nothing else should run meanwhile;
--only NAME runs a part of the grid, --merge adds to what was measured before. Cells are of the
machine's faster cache speed (a probe under 0.1 us) where one of --tries found it so.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

NEAR, FAR, SHARE = 1.15, 1.5, 0.95
FAST_US = 0.1
GRID = {  # name: arguments of `sinew bench`
    "shm-2": "allreduce -p 2 --sizes 8,256,4K,64K,1M,16M",
    "shm-4": "allreduce -p 4 --sizes 8,256,4K,64K,1M,16M",
    "shm-8": "allreduce -p 8 --sizes 8,256,4K,64K,1M,16M",
    "shm-large": "allreduce -p 2,4,8 --sizes 110278272 --algo auto,flat,direct,ring",
    "others-2": "broadcast allgather reduce_scatter alltoall -p 2 --sizes 4K,1M,16M",
    "others-8": "broadcast allgather reduce_scatter alltoall -p 8 --sizes 4K,1M,16M",
    "tcp-2": "allreduce -p 2 --transport tcp --sizes 8,4K,64K,1M,16M",
    "tcp-8": "allreduce -p 8 --transport tcp --sizes 8,4K,64K,1M,16M",
}


def measure(sinew, arguments, rounds, budget):
    command = [sinew, "bench", *arguments.split(), "--rounds", str(rounds), "--budget", str(budget),
               "--json"]
    if "--algo" not in command:
        command += ["--algo", "auto,all"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def cells_of(results):
    groups = {}
    for row in results:
        key = (row["transport"], row["collective"], row["ranks"], row["bytes"])
        groups.setdefault(key, []).append(row)
    for (transport, collective, ranks, size), rows in sorted(groups.items()):
        chosen = [row for row in rows if row["auto"]]
        others = [row for row in rows if not row["auto"]]
        if not chosen or not others:
            continue
        best = min(others, key=lambda row: row["p50_us"])
        auto = chosen[0]
        chosen = [row for row in others if row["algorithm"] == auto["algorithm"]] or chosen
        yield {"transport": transport, "collective": collective, "ranks": ranks, "bytes": size,
               "chosen_us": chosen[0]["p50_us"], "chosen": auto["algorithm"], "auto_us": auto["p50_us"],
               "best": best["algorithm"], "best_us": best["p50_us"],
               "ratio": round(chosen[0]["p50_us"] / best["p50_us"], 3),
               "auto_ratio": round(auto["p50_us"] / best["p50_us"], 3),
               "probe_us": statistics.median(auto.get("probe_us") or [0])}


def fastest(asked, arguments):
    """The cells of a part: those in the faster speed, of the first try that found them so."""
    kept = {}
    for _ in range(asked.tries):
        found = measure(asked.sinew, arguments, asked.rounds, asked.budget)["results"]
        for cell in cells_of(found):
            place = (cell["collective"], cell["ranks"], cell["bytes"])
            if place not in kept or (cell["probe_us"] < FAST_US <= kept[place]["probe_us"]):
                kept[place] = cell
        if all(cell["probe_us"] < FAST_US for cell in kept.values()):
            break
    return list(kept.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sinew")
    parser.add_argument("-o", "--output")
    parser.add_argument("--only", choices=GRID, action="append")
    parser.add_argument("--merge", action="store_true", help="keep cells of OUTPUT not measured now")
    parser.add_argument("--tries", type=int, default=1, help="of parts not all in the faster speed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.1)
    asked = parser.parse_args()
    cells = []
    for name in asked.only or GRID:
        print(f"{name}: {GRID[name]}", file=sys.stderr)
        cells += fastest(asked, GRID[name])
    key = lambda cell: (cell["transport"], cell["collective"], cell["ranks"], cell["bytes"])
    if asked.merge and Path(asked.output).exists():
        known = {key(cell) for cell in cells}
        cells += [c for c in json.loads(Path(asked.output).read_text())["cells"]
                  if key(c) not in known]
    cells.sort(key=key)
    near = sum(cell["ratio"] <= NEAR for cell in cells) / len(cells)
    worst = max(cells, key=lambda cell: cell["ratio"])
    for cell in cells:
        print(f"{cell['transport']:4} {cell['collective']:15} {cell['ranks']:2} ranks "
              f"{cell['bytes']:>10} B  {cell['chosen_us']:>11.2f} us  best {cell['best_us']:>11.2f} "
              f"us  x{cell['ratio']:.2f}  {cell['best']}"
              f"{'' if cell['probe_us'] < FAST_US else '  (slow)'}")
    print(f"{len(cells)} cells: {near:.0%} within {NEAR}x of the best candidate, the worst "
          f"{worst['ratio']}x ({worst['collective']}, {worst['ranks']} ranks, {worst['bytes']} B, "
          f"{worst['transport']})")
    if asked.output:
        Path(asked.output).write_text(json.dumps(
            {"schema": "sinew-selection", "within": near, "worst": worst["ratio"],
             "fast_cells": sum(cell["probe_us"] < FAST_US for cell in cells), "cells": cells}, indent=1) + "\n")
    return 0 if near >= SHARE and worst["ratio"] <= FAR else 5


if __name__ == "__main__":
    sys.exit(main())
