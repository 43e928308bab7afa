#!/usr/bin/env python3
"""Prints the tables of docs/performance.md from the JSON that bench/record.sh keeps.

usage: performance_table.py [FOLDER] [--write]    (default: bench/results)

--write puts them between the folder's markers in docs/performance.md instead.
"""
import contextlib
import io
import json
import pathlib
import sys

words = [word for word in sys.argv[1:] if word != "--write"]
folder = pathlib.Path(words[0] if words else "bench/results")


def rows(name):
    path = folder / f"{name}.json"
    return json.loads(path.read_text())["results"] if path.exists() else []


def size(bytes_):
    for unit, step in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if bytes_ >= step and bytes_ % step == 0:
            return f"{bytes_ // step} {unit}"
    return f"{bytes_ / 1e6:.2f} MB" if bytes_ >= 1e6 else f"{bytes_} B"


def micros(us):
    return f"{us:.2f} us" if us < 100 else f"{us:.0f} us" if us < 10000 else f"{us / 1e3:.1f} ms"


def cell(row):
    if "ratio" not in row:
        return micros(row["p50_us"])
    modes = [f"{row[key]:.1f}" if key in row else "-" for key in ("ratio_fast_mode", "ratio_slow_mode")]
    return f"{micros(row['p50_us'])}, {row['ratio']:.1f}x {row['best_peer']} ({' / '.join(modes)})"


def table(title, results, key):
    if not results:
        return
    ranks = sorted({row["ranks"] for row in results})
    print(f"\n{title}\n")
    print("| | " + " | ".join(f"{r} ranks" for r in ranks) + " |")
    print("|---" * (len(ranks) + 1) + "|")
    for label in dict.fromkeys(key(row) for row in results):
        cells = {row["ranks"]: cell(row) for row in results if key(row) == label}
        print(f"| {label} | " + " | ".join(cells.get(r, "") for r in ranks) + " |")


def sweep_table(title, results):
    if not results:
        return
    sizes = list(dict.fromkeys((row["ranks"], row["bytes"]) for row in results))
    print(f"\n{title}\n")
    print("| | " + " | ".join(f"{ranks} ranks, {size(b)}" for ranks, b in sizes) + " |")
    print("|---" * (len(sizes) + 1) + "|")
    for knob, value in dict.fromkeys((row["sweep"]["knob"], row["sweep"]["value"]) for row in results):
        cells = {(row["ranks"], row["bytes"]): f"{micros(row['p50_us'])}, {row['sweep']['speed']:.2f}"
                 for row in results if (row["sweep"]["knob"], row["sweep"]["value"]) == (knob, value)}
        print(f"| {knob}={value} | " + " | ".join(cells.get(at, "") for at in sizes) + " |")


def sparse_table(title, results):
    if not results:
        return
    print(f"\n{title}\n")
    print("| gradient and residual | ranks, density | step | worst / median: step, Open MPI, ours | dense: Open MPI, ours | Open MPI dense / step | items / k | received a rank |")
    print("|---" * 8 + "|")
    for row in sorted(results, key=lambda r: (not r.get("accumulated"), r["ranks"])):
        step, mpi = row["step_ms_p50"], row["peers"]["openmpi"]["dense_ms_p50"]
        peer = row["peers"]["openmpi"]
        worst = ", ".join(f"{round_:.2f} ({all_:.2f})" for round_, all_ in (
            (row["step_worst_over_median"], row["step_ms_max"] / step),
            (peer["dense_worst_over_median"], peer["dense_ms_max"] / mpi),
            (row["dense_worst_over_median"], row["dense_ms_max"] / row["dense_ms_p50"])))
        form = "added up before" if row.get("accumulated") else "apart"
        print(f"| {form} | {row['ranks']}, {row['density']:.0%} | {step:.1f} ms | {worst} | "
              f"{mpi:.1f} ms, {row['dense_ms_p50']:.1f} ms | {mpi / step:.1f}x | "
              f"{row['items_over_k_min']:.2f}-{row['items_over_k_max']:.2f} | {row['bytes_per_rank'] / 1e6:.2f} MB |")


def kernel_table(title):
    path = folder / "kernels.json"
    if not path.exists():
        return
    print(f"\n{title}\n")
    print("| density | accumulate | accumulate, select and compact | with the exact threshold | exact k-th magnitude |")
    print("|---" * 5 + "|")
    for run in json.loads(path.read_text())["benchmarks"]:
        per_mille = int(run["name"].split("per_mille:")[1].split("/")[0])
        print(f"| {per_mille / 10:g} % | {run['accumulate_ms']:.1f} ms | {run['fused/accumulate']:.2f}x | "
              f"{run['top_k/accumulate']:.2f}x | {run['kth_ms']:.1f} ms |")


def profiler_table(title):
    path = folder / "profiler.json"
    if not path.exists():
        return
    print(f"\n{title}\n")
    print("| | instructions | added | time | added | ratio |")
    print("|---" * 6 + "|")
    for mpi, cases in json.loads(path.read_text())["results"].items():
        for what, found in cases.items():
            cells = []
            for figure, unit in (("instructions", ""), ("ns", " ns")):
                alone, profiled = (found.get(figure, {}).get(key) for key in ("alone", "profiled"))
                cells += ["", ""] if alone is None else [f"{alone:.0f}{unit}", f"{profiled - alone:.0f}{unit}"]
                if figure == "ns":
                    cells.append("" if alone is None else f"{profiled / alone:.2f}")
            print(f"| {mpi}: {what} | " + " | ".join(cells) + " |")


def tables():
    table("Allreduce, f32 sum, in place, private buffers", rows("allreduce"), lambda r: size(r["bytes"]))
    table("The same in `alloc_shared()` buffers, rewritten between calls", rows("allreduce-shared"), lambda r: size(r["bytes"]))
    table("Other collectives", rows("others"), lambda r: f"{r['collective']} {size(r['bytes'])}")
    sparse_table("A step of Ok-Topk beside dense allreduces, 27,569,568 elements", sum((rows(f"sparse-{part}-percent{form}") for part in (2, 1) for form in ("-accumulated", "")), []))
    kernel_table("Selection on one core, 27,569,568 elements: times the bare accumulate")
    table("Beside the same exchange written by hand (flat allreduce)", rows("hand"), lambda r: size(r["bytes"]))
    table("Over sockets on loopback (`--transport tcp`)", rows("tcp"), lambda r: size(r["bytes"]))
    sweep_table("Options of `--transport tcp`, each varied alone: time a call, and speed with the first value as 1", rows("tcp-sweeps"))
    table("With two busy processes on the two cores", rows("hogs"), lambda r: size(r["bytes"]))
    profiler_table("The profiler: what it adds to a call")


if "--write" in sys.argv:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        tables()
    root = pathlib.Path(__file__).resolve().parent.parent
    page = root / "docs" / "performance.md"
    marker = f"<!-- tables: tools/performance_table.py {folder.resolve().relative_to(root)} -->"
    head, rest = page.read_text().split(marker)
    tail = rest.split("<!-- end -->", 1)[1]
    page.write_text(f"{head}{marker}\n{text.getvalue()}\n<!-- end -->{tail}")
else:
    tables()
