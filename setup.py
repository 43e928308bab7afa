"""Builds the Python packages with CMake, for the interpreter that runs this.

SINEW_BUILD_TREE names a build tree that has them already: then they are taken from there as they are,
and nothing is built. SINEW_JOBS is how many compilers run at a time.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PACKAGES = {"sinew": "sinew_python", "sinew_torch": "sinew_torch_backend"}
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


class CMakeBuild(build_ext):
    def run(self):
        built = os.environ.get("SINEW_BUILD_TREE")
        tree = Path(built or self.build_temp).resolve()
        if not built:
            self.build(tree)
        found = [package for package in PACKAGES
                 if list((tree / "python" / package).glob(f"*{SUFFIX}"))]
        if not found:
            sys.exit(f"{tree} has no package for {sys.executable} (modules end in {SUFFIX}): "
                     f"build {' and '.join(PACKAGES.values())} there, with -DSINEW_PYTHON for it")
        for package in found:
            self.install_files(tree / "python" / package, Path(self.build_lib) / package)

    def build(self, tree):
        tree.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["cmake", "-S", str(ROOT), "-B", str(tree), "-G", "Ninja",
             "-DCMAKE_BUILD_TYPE=Release", f"-DSINEW_PYTHON={sys.executable}",
             *(f"-DSINEW_BUILD_{part}=OFF"
               for part in ("TESTS", "EXAMPLES", "PEERS", "MPI", "TORCH"))], check=True)
        known = subprocess.run(["ninja", "-C", str(tree), "-t", "targets", "all"], check=True,
                               capture_output=True, text=True).stdout
        targets = [target for target in PACKAGES.values() if f"{target}:" in known]
        if not targets:
            sys.exit("neither pybind11 nor torch is installed for this Python: apt-get install "
                     "pybind11-dev python3-numpy python3-torch")
        subprocess.run(["ninja", "-C", str(tree), "-j", os.environ.get("SINEW_JOBS", "2"),
                        *targets], check=True)

    def install_files(self, package, to):
        """Without what Python left beside them; links become what they point to."""
        to.mkdir(parents=True, exist_ok=True)
        for file in package.iterdir():
            if file.is_file():
                shutil.copy(file, to / file.name)

    def get_outputs(self):
        return [str(path) for package in PACKAGES
                for path in (Path(self.build_lib) / package).glob("*")]


# The extension stands for what CMake builds, so that the wheel is one for this machine.
setup(ext_modules=[Extension("sinew._sinew", [])], cmdclass={"build_ext": CMakeBuild})
