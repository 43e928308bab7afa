"""The generator of the profiler's wrappers stops at a routine that semantics.txt does not explain."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRELOAD = ROOT / "src" / "preload"
HEADER = """typedef int MPI_Comm;
int MPI_Barrier(MPI_Comm comm);
int MPI_Ibarrier(MPI_Comm comm, int *request);
{more}
"""


def generate(more):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "mpi.h").write_text(HEADER.format(more=more), encoding="utf-8")
        return subprocess.run([sys.executable, PRELOAD / "generate.py", PRELOAD / "semantics.txt", folder,
                               "cc", f"{folder}/wrappers"], capture_output=True, text=True, check=False)


known = generate("")
assert known.returncode == 0, known.stderr
for name in ("Teleport", "Teleport_c", "Iteleport"):
    unknown = generate(f"int MPI_{name}(int count, MPI_Comm comm);")
    assert unknown.returncode != 0, name
    assert f"MPI_{name}" in unknown.stderr and "semantics.txt" in unknown.stderr, unknown.stderr
print("fine")
