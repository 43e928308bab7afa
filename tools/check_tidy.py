#!/usr/bin/env python3
"""Runs clang-tidy over src/ with the flags of a build: check_tidy.py ROOT BUILD CLANG_TIDY.

All of src/ takes minutes, so that is left to SINEW_FULL=1 (`./sinew test --full`). Otherwise only
files that the working tree or the last commit changed are looked at, MOST_CHANGED at most, but with
every check. Exit 77: nothing to look at.

Nearly all the time goes into headers, so several files of a folder are looked at as one that
includes them, as far as they compile so: two may use a name for different things.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import count, groupby
from pathlib import Path

from compilation import failures, load_commands

MOST_CHANGED = 6
LEFT_OUT = "-performance-unnecessary-value-param"  # of all of src/: it takes half of the time
MOST_TOGETHER = 12
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


def goes_alone(path):
    """Whether it cannot be part of another: Highway reads such a file once a target, by its name."""
    return "HWY_TARGET_INCLUDE" in path.read_text(encoding="utf-8")


def flags_of(command):
    """Without the compiler and what launches it."""
    return command[next(i for i, word in enumerate(command) if word.startswith("-")):]


def batches(sources, flags):
    """Lists of files of one folder with the same flags, MOST_TOGETHER at most."""
    def kind(path):
        return str(path.parent), flags[path], str(path) if goes_alone(path) else ""

    for _, group in groupby(sorted(sources, key=kind), key=kind):
        group = list(group)
        count = -(-len(group) // MOST_TOGETHER)
        for i in range(count):
            yield group[i::count]


def halves(batch):
    return [batch[0::2], batch[1::2]]


class Tidy:
    def __init__(self, root, program, commands, checks):
        self.commands = commands
        # The flags are the compiler's, which may not be clang.
        self.program = [program, "--quiet", f"--config-file={root / '.clang-tidy'}",
                        f"--checks={checks}", "--extra-arg=-Wno-unknown-warning-option"]

    def look_at(self, unit, like):
        return [*self.program, str(unit), "--", *flags_of(self.commands[like])]

    def units(self, sources, folder):
        """{file: sources in it}: a source alone, or a new file in `folder` that includes several."""
        units, number = {}, count()
        pending = list(batches(sources, {path: tuple(self.commands[path]) for path in sources}))
        while pending:
            units |= {batch[0]: batch for batch in pending if len(batch) == 1}
            tried = {}
            for batch in pending:
                if len(batch) > 1:
                    # By that word the analyzer knows that what is included is not a header.
                    unit = Path(folder, f"UnifiedSource{next(number)}.cpp")
                    unit.write_text("".join(f'#include "{path}"  // NOLINT\n' for path in batch),
                                    encoding="utf-8")
                    tried[unit] = batch
            collide = dict(failures({unit: [*self.commands[batch[0]], "-fsyntax-only", str(unit)]
                                     for unit, batch in tried.items()}))
            pending = [half for unit in collide for half in halves(tried[unit])]
            units |= {unit: batch for unit, batch in tried.items() if unit not in collide}
        return units

    def failures(self, sources):
        """(sources, output) of what is not tidy."""
        with tempfile.TemporaryDirectory() as folder:
            units = self.units(sources, folder)
            for unit, output in failures({unit: self.look_at(unit, batch[0])
                                          for unit, batch in units.items()}):
                yield units[unit], output


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
    checks = LEFT_OUT
    if os.environ.get("SINEW_FULL", "") in ("", "0"):
        checks = ""
        changed = [path for path in changed_files(root) if path in sources]
        sources = changed[:MOST_CHANGED]
        print(f"{len(sources)} of {len(changed)} changed files; SINEW_FULL=1 looks at all of src/")
    if not sources:
        sys.exit(SKIPPED)
    bad = list(Tidy(root, clang_tidy, commands, checks).failures(sources))
    for batch, output in bad:
        print(f"{', '.join(str(path.relative_to(root)) for path in batch)}:\n{output}")
    print(f"{len(sources)} files, {'not ' if bad else ''}all tidy")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
