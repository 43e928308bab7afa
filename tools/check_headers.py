#!/usr/bin/env python3
"""Compiles every header under include/ and src/ on its own: check_headers.py ROOT BUILD.

A header gets the flags of a source file of its own layer, so that a leaf's header finds what the
leaf needs; public headers get those of the lowest layer. Left out: layers that this build leaves
out (an optional leaf) or compiles with nvcc, and -inl.hpp, which Highway reads once a target and
never alone.
"""

import sys
from pathlib import Path

from compilation import failures, load_commands

HEADER_SUFFIXES = {".hpp", ".h"}


def layer_flags(root, build):
    """{layer: compiler and flags of one of its source files}."""
    source_root = root / "src"
    flags = {}
    for source, command in load_commands(build).items():
        if source.is_relative_to(source_root) and source.suffix == ".cpp":
            flags.setdefault(source.relative_to(source_root).parts[0], command)
    return flags


def header_commands(root, build):
    flags = layer_flags(root, build)
    core = flags.get("base") or next(iter(flags.values()))
    commands = {}
    for folder in ("include", "src"):
        for header in sorted((root / folder).rglob("*")):
            if header.suffix not in HEADER_SUFFIXES or header.stem.endswith("-inl"):
                continue
            layer = header.relative_to(root / folder).parts[0]
            command = core if folder == "include" else flags.get(layer)
            if command:
                alone = ["-fsyntax-only", "-x", "c++", "-include", str(header), "/dev/null"]
                commands[header.relative_to(root)] = command + alone
    return commands


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, build = (Path(argument).resolve() for argument in sys.argv[1:])
    commands = header_commands(root, build)
    bad = list(failures(commands))
    for header, output in bad:
        print(f"{header} does not compile on its own:\n{output}")
    print(f"{len(commands) - len(bad)} of {len(commands)} headers compile on their own")
    sys.exit(1 if bad or not commands else 0)


if __name__ == "__main__":
    main()
