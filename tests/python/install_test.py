"""`pip install .` into an empty folder gives both packages, whole: they need nothing of the build tree.

The modules come from the build tree that is tested (SINEW_BUILD_TREE), since building them again takes
long; SINEW_TEST_INSTALL=source has pip build everything.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from launch import run_ranks

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("pip", "setuptools", "wheel")
FROM_SOURCE = os.environ.get("SINEW_TEST_INSTALL") == "source"


def project(work):
    """What pip is given: it leaves files beside setup.py, so that must be a copy."""
    copy = work / "project"
    left_out = shutil.ignore_patterns("build", ".git", "node_modules", "__pycache__")
    if FROM_SOURCE:
        shutil.copytree(ROOT, copy, symlinks=True, ignore=left_out)
    else:
        copy.mkdir()
        for file in ("setup.py", "pyproject.toml"):
            shutil.copy(ROOT / file, copy)
    return copy


def pip_install(work, tree):
    folder = work / "installed"
    environment = dict(os.environ, HOME=str(work), SINEW_BUILD_TREE="" if FROM_SOURCE else str(tree))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index",
         "--no-cache-dir", "--disable-pip-version-check", "--target", str(folder), "."],
        cwd=project(work), env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    return folder, done


def main(case):
    """A rank, with nothing in its environment but the folder."""
    import importlib.metadata
    import numpy
    import torch
    import torch.distributed as dist

    import sinew
    import sinew_torch

    dist.init_process_group("sinew")
    tensor = torch.arange(1000.) + dist.get_rank()
    dist.all_reduce(tensor)
    assert torch.equal(tensor, torch.arange(1000.) * 2 + 1), tensor

    def add(communicator):
        array = numpy.full(100, communicator.rank + 1)
        communicator.allreduce(array)
        assert (array == 3).all(), array

    sinew.run_local(2, add)
    with open("/proc/self/maps") as maps:
        mapped = {line.split()[-1] for line in maps if "sinew" in line and ".so" in line}
    print(json.dumps({"files": sorted(mapped | {sinew.__file__, sinew_torch.__file__}),
                      "version": importlib.metadata.version("sinew")}))
    dist.destroy_process_group()


def test_installed(folder):
    for one in run_ranks("imports", 2):
        assert len(one["files"]) == 4, one  # of each package its module and its first file
        assert all(file.startswith(f"{folder}/") for file in one["files"]), one
        assert one["version"] == "0.1.0", one
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    links = [path for path in folder.rglob("*") if path.is_symlink()]
    assert not links, links
    for wanted in ("sinew/py.typed", "sinew/_sinew.pyi", "sinew_torch/py.typed",
                   "sinew_torch/hooks.py"):
        assert wanted in files, (wanted, files)


def test_empty_tree(work):
    """Where nothing was built pip fails, and says what to build."""
    empty = work / "empty"
    (empty / "tree").mkdir(parents=True)
    _, done = pip_install(empty, empty / "tree")
    assert done.returncode != 0 and "sinew_torch_backend" in done.stdout, done.stdout


def test():
    missing = [name for name in TOOLS if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: this Python has no {', '.join(missing)} "
              f"(apt-get install {' '.join('python3-' + name for name in missing)})")
        sys.exit(77)
    tree = Path(os.environ["PYTHONPATH"].split(":")[0]).resolve().parent
    with tempfile.TemporaryDirectory(prefix="sinew_install_test.") as name:
        work = Path(name).resolve()
        folder, done = pip_install(work, tree)
        assert done.returncode == 0, done.stdout[-3000:]
        if not FROM_SOURCE:
            test_empty_tree(work)
        clean = {"PATH": "/usr/bin:/bin", "HOME": str(work), "PYTHONPATH": str(folder),
                 "PYTHONDONTWRITEBYTECODE": "1"}
        os.environ.clear()
        os.environ.update(clean)
        test_installed(folder)
        print(f"installed by pip: {', '.join(sorted(path.name for path in folder.iterdir()))}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        test()
