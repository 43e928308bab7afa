"""Builds the Python packages with CMake, for the interpreter that runs this."""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PACKAGES = {"sinew": "sinew_python", "sinew_torch": "sinew_torch_backend"}


class CMakeBuild(build_ext):
    def run(self):
        tree = Path(self.build_temp).resolve()
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
        for package in PACKAGES:
            if list((tree / "python" / package).glob("*.so")):
                self.copy_tree(str(tree / "python" / package),
                               str(Path(self.build_lib) / package))

    def get_outputs(self):
        return [str(path) for package in PACKAGES
                for path in (Path(self.build_lib) / package).glob("*")]


# The extension stands for what CMake builds, so that the wheel is one for this machine.
setup(ext_modules=[Extension("sinew._sinew", [])], cmdclass={"build_ext": CMakeBuild})
