#!/usr/bin/env python3
"""Refuses C++ that clang-format would change: check_format.py ROOT CLANG_FORMAT.

`check_format.py ROOT CLANG_FORMAT --fix` changes it.
"""

import subprocess
import sys
from pathlib import Path

FOLDERS = ["include", "src", "tests", "bench", "examples"]
SUFFIXES = {".hpp", ".cpp", ".h", ".cu"}


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    root, clang_format = Path(sys.argv[1]), sys.argv[2]
    mode = ["-i"] if sys.argv[3:] == ["--fix"] else ["--dry-run", "--Werror"]
    files = sorted(str(path) for folder in FOLDERS for path in (root / folder).rglob("*")
                   if path.suffix in SUFFIXES)
    try:
        status = subprocess.run([clang_format, "--style=file", *mode, *files]).returncode
    except OSError:
        sys.exit(f"{clang_format} is missing: apt-get install {clang_format}")
    if status != 0:
        print(f"To repair: {' '.join(sys.argv)} --fix")
    sys.exit(status)


if __name__ == "__main__":
    main()
