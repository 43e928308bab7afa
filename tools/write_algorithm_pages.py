#!/usr/bin/env python3
"""Refreshes what docs/ says about collectives and algorithms: write_algorithm_pages.py PROGRAM ROOT.

Each page in docs/collectives/ and docs/algorithms/ is prose by hand, with one part between MARKERS
that this script writes from `sinew list` and `sinew draw`; drawings are SVG files beside the pages.
With --check nothing is written and stale, missing or superfluous files are named (exit 1).
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

BEGIN = "<!-- generated: tools/write_algorithm_pages.py -->"
END = "<!-- end of what is generated -->"
COST_RANKS = 8
DRAWN_RANKS = 4
DRAWN_SEGMENTS = 2  # enough to see a pipeline


def ask(program, *words):
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


def multiple(value):
    return "-" if value == 0 else "S" if value == 1 else f"{value:.3g} S"


def svg_name(row):
    return f"{row['collective']}-{row['algorithm']}.svg"


def draw(program, row):
    words = ["draw", row["collective"], "--algo", row["algorithm"], "-p", str(DRAWN_RANKS)]
    if row["pipelines"]:
        words += ["--segments", str(DRAWN_SEGMENTS)]
    return ask(program, *words, "--format", "svg")


def traits(row):
    words = [f"needs {row['needs']}"] if row["needs"] != "anything" else ["fits any number of ranks"]
    words += [text for key, text in (("pipelines", "pipelines in segments"),
                                     ("rank_order", "keeps rank order"),
                                     ("in_place", "works in place"),
                                     ("ragged", "takes ragged parts")) if row[key]]
    return ", ".join(words)


def cost_lines(row):
    yield "| rank | rounds | sends | recvs | sent | received | written | read |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for rank in row["cost"]["ranks"]:
        amounts = " | ".join(multiple(rank[key]) for key in ("sent", "received", "written", "read"))
        yield (f"| {rank['who']} | {row['cost']['rounds']} | {rank['sends']} | {rank['recvs']} "
               f"| {amounts} |")


def algorithm_part(rows):
    """What is generated on the page of one algorithm name."""
    for row in rows:
        nodes = ", two nodes" if row["cost"]["nodes"] == 2 else ""
        segments = f", {DRAWN_SEGMENTS} segments" if row["pipelines"] else ""
        yield f"## {row['collective']}"
        yield ""
        yield f"{row['summary'].capitalize()}; {traits(row)}."
        yield ""
        yield (f"![{row['collective']} {row['algorithm']} with {DRAWN_RANKS} ranks{nodes}{segments}]"
               f"({svg_name(row)})")
        yield ""
        yield (f"Cost with P = {COST_RANKS}{nodes}, as multiples of S, {row['message']} "
               f"(`sinew list {row['collective']} --cost -p {COST_RANKS}`):")
        yield ""
        yield from cost_lines(row)
        yield ""


def collective_part(program, rows):
    """What is generated on the page of one collective."""
    collective = rows[0]["collective"]
    command = ["list", collective, "--cost", "-p", str(COST_RANKS)]
    yield "## Algorithms"
    yield ""
    for row in rows:
        yield (f"- [{row['algorithm']}](../algorithms/{row['algorithm']}.md): {row['summary']} "
               f"({traits(row)})")
    yield ""
    yield "## Cost"
    yield ""
    yield "```"
    yield f"$ sinew {' '.join(command)}"
    yield ask(program, *command).rstrip()
    yield "```"


def with_part(page, lines):
    """The page's text with the part between the markers replaced."""
    text = page.read_text(encoding="utf-8") if page.exists() else f"# {page.stem}\n\n{BEGIN}\n{END}\n"
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{page}: the markers '{BEGIN}' and '{END}' are missing")
    part = "\n".join(lines).strip()
    return f"{before}{BEGIN}\n{part}\n{END}{after}"


def wanted_files(program, root):
    """Every file as it should be: path to text."""
    listing = json.loads(ask(program, "list", "--json", "--cost", "-p", str(COST_RANKS)))
    by_collective, by_algorithm, files = {}, {}, {}
    for row in listing["algorithms"]:
        by_collective.setdefault(row["collective"], []).append(row)
        by_algorithm.setdefault(row["algorithm"], []).append(row)
    for collective, rows in by_collective.items():
        page = root / "docs" / "collectives" / f"{collective}.md"
        files[page] = with_part(page, collective_part(program, rows))
    for algorithm, rows in by_algorithm.items():
        page = root / "docs" / "algorithms" / f"{algorithm}.md"
        files[page] = with_part(page, algorithm_part(rows))
        for row in rows:
            files[page.parent / svg_name(row)] = draw(program, row)
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the built sinew")
    parser.add_argument("root", type=Path, help="the checkout")
    parser.add_argument("--check", action="store_true", help="write nothing, name what is stale")
    arguments = parser.parse_args()
    files = wanted_files(arguments.program, arguments.root)
    there = {path for folder in ("collectives", "algorithms")
             for path in (arguments.root / "docs" / folder).glob("*.*")}
    superfluous = sorted(there - set(files))
    stale = sorted(path for path, text in files.items()
                   if not path.exists() or path.read_text(encoding="utf-8") != text)
    if arguments.check:
        for path in stale + superfluous:
            print(f"{path.relative_to(arguments.root)}: stale; run tools/write_algorithm_pages.py")
        sys.exit(1 if stale or superfluous else 0)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
        print(f"wrote {path.relative_to(arguments.root)}")
    for path in superfluous:
        print(f"{path.relative_to(arguments.root)}: belongs to no algorithm; remove it")


if __name__ == "__main__":
    main()
