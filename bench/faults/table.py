"""The table of bench/faults, as Markdown."""
import contextlib
import io

from outcome import CASES, summarize

TITLES = {"sinew-shm": "Sinew, shm", "sinew-tcp": "Sinew, tcp", "gloo": "Gloo", "openmpi": "Open MPI",
          "mpich": "MPICH"}
BEGIN, END = "<!-- table: bench/faults/faults.py -->", "<!-- end -->"


def print_table(measured):
    cells = {(r["case"], r["system"]): summarize(r["case"], r["runs"]) for r in measured["results"]}
    systems = [s for s in TITLES if any(system == s for _, system in cells)]
    print("| | " + " | ".join(TITLES[s] for s in systems) + " |")
    print("|---" * (len(systems) + 1) + "|")
    for case, kind in CASES.items():
        if any((case, s) in cells for s in systems):
            print(f"| {kind.title} | " + " | ".join(cells.get((case, s), "") for s in systems) + " |")


def write_page(page, measured):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_table(measured)
    head, rest = page.read_text().split(BEGIN)
    page.write_text(f"{head}{BEGIN}\n\n{text.getvalue()}\n{END}{rest.split(END)[1]}")
