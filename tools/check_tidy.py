#!/usr/bin/env python3
"""Runs clang-tidy over src/ with the flags of a build: check_tidy.py ROOT BUILD CLANG_TIDY.

All of src/ takes minutes, so that is left to SINEW_FULL=1 (`./sinew test --full`). Otherwise only
files that the working tree or the last commit changed are looked at, MOST_CHANGED at most. Exit 77:
nothing to look at.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from compilation import failures, load_commands

MOST_CHANGED = 6
SKIPPED = 77


def git_lines(root, *arguments):
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    except OSError:
        return []  # no git: nothing is known to have changed
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_files(root):
    """Newest first: not yet committed, then of the last commit."""
    uncommitted = git_lines(root, "status", "--porcelain", "--untracked-files=all", "--", "src")
    committed = git_lines(root, "diff", "--name-only", "HEAD~1", "--", "src")
    names = dict.fromkeys([line[3:] for line in uncommitted] + committed)
    return [(root / name).resolve() for name in names]


def reads_torch(path):
    """Whether it includes torch, whose headers clang 14 refuses as C++20 (g++ takes them)."""
    return re.search(r'#include (<(ATen|torch)/|"torch/(net|torch_learner|speech|staging|task)\.hpp")',
                     path.read_text(encoding="utf-8")) is not None


def flags_of(command):
    """Without the compiler and what launches it."""
    return command[next(i for i, word in enumerate(command) if word.startswith("-")):]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    root, build, clang_tidy = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    if not shutil.which(clang_tidy):
        sys.exit(f"{clang_tidy} is missing: apt-get install {clang_tidy}")
    # clang-tidy knows no CUDA as new as today's.
    commands = load_commands(build)
    sources = [path for path in commands
               if path.is_relative_to(root / "src") and path.suffix == ".cpp"
               and not reads_torch(path)]
    if os.environ.get("SINEW_FULL", "") in ("", "0"):
        changed = [path for path in changed_files(root) if path in sources]
        sources = changed[:MOST_CHANGED]
        print(f"{len(sources)} of {len(changed)} changed files; SINEW_FULL=1 looks at all of src/")
    if not sources:
        sys.exit(SKIPPED)
    # The flags are the compiler's, which may not be clang.
    command = [clang_tidy, "--quiet", "--extra-arg=-Wno-unknown-warning-option"]
    bad = list(failures({path: [*command, str(path), "--", *flags_of(commands[path])]
                         for path in sources}))
    for path, output in bad:
        print(f"{path.relative_to(root)}:\n{output}")
    print(f"{len(sources) - len(bad)} of {len(sources)} files are tidy")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
