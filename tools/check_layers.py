#!/usr/bin/env python3
"""Refuses includes that break the layering: check_layers.py ROOT.

A folder under src/ is a layer. It may include itself and the layers before it in LAYERS, less what
FORBIDDEN takes away. Leaves may include every layer but not each other. Headers of MPI, torch, CUDA
and pybind11 appear only in their own leaf. A public header belongs to the layer that PUBLIC names
for it, and includes only <sinew/...> and the standard library, so that it drags nothing into a
user's program. Every header has #pragma once, but for those Highway reads once a target (-inl.hpp).
"""

import re
import sys
from pathlib import Path

LAYERS = ["base", "kernel", "codec", "schedule", "collective", "trace", "transport", "model",
          "runtime", "compress", "train", "imports", "report"]
LEAVES = ["cli", "mpi", "preload", "torch", "torch_backend", "python", "cuda"]
PUBLIC = {  # include/sinew/: the layer of each header
    "algorithms.hpp": "collective",
    "communicator.hpp": "runtime",
    "compression.hpp": "compress",
    "draw.hpp": "schedule",
    "error.hpp": "base",
    "lossless.hpp": "codec",
    "schedule.hpp": "schedule",
    "scheme.hpp": "compress",
    "sinew.hpp": "compress",
    "tensor_frame.hpp": "codec",
    "trace.hpp": "trace",
    "transport.hpp": "transport",
    "types.hpp": "base",
    "verify.hpp": "schedule",
}
FORBIDDEN = {"model": {"transport"}, "imports": {"transport"}, "report": {"transport"}}
FOREIGN = [  # header pattern, the leaf that may include it
    (re.compile(r"mpi(-ext)?\.h$"), {"mpi", "preload"}),
    (re.compile(r"(torch|ATen|c10)/"), {"torch", "torch_backend"}),
    (re.compile(r"(cuda|cublas|cub/|nccl|thrust/)"), {"cuda"}),
    (re.compile(r"(pybind11/|Python\.h$)"), {"python", "torch_backend"}),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
HEADER_SUFFIXES = {".hpp", ".h", ".cuh"}
SOURCE_SUFFIXES = HEADER_SUFFIXES | {".cpp", ".c", ".cc", ".cu"}


def includes(text):
    """(line number, name, whether in quotes) of every include."""
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found[1] or found[2], found[1] is not None


def reach(layer):
    """The layers that files of `layer` may include."""
    if layer in LEAVES:
        return {layer, *LAYERS}
    return set(LAYERS[: LAYERS.index(layer) + 1]) - FORBIDDEN.get(layer, set())


def foreign_objection(name, layer):
    for pattern, owners in FOREIGN:
        if pattern.match(name) and layer not in owners:
            return f"<{name}> belongs to the leaf {' or '.join(sorted(owners))}"
    return None


def public_objection(root, name, layer):
    """What is wrong with `#include <sinew/...>` in a file of `layer`, if anything."""
    target = PUBLIC.get(name.removeprefix("sinew/"))
    if not (root / "include" / name).is_file():
        return f"<{name}> is no public header"
    if target is not None and target not in reach(layer):
        return f"layer {layer} may not include <{name}> of layer {target}"
    return None


def quoted_objection(root, path, name, layer):
    """What is wrong with `#include "name"` in a file under src/, if anything."""
    if not (root / "src" / name).is_file():
        if (root / "bench" / name).is_file() and layer == "cli":
            return None  # the measuring loop that `sinew bench` shares with the peers' programs
        if (path.parent / name).is_file():
            return f'write "{name}" relative to src/, so that its layer shows'
        return f'"{name}" is neither under src/ nor beside the file; use <> for what is not ours'
    target = name.split("/")[0]
    if target not in reach(layer):
        return f'layer {layer} may not include "{name}" of layer {target}'
    return None


def pragma_objection(text):
    """#pragma once comes first; only comments and blank lines may stand before it."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for line in code.splitlines():
        line = line.split("//")[0].strip()
        if line:
            return None if line == "#pragma once" else "the first line of code is not #pragma once"
    return "no #pragma once"


def check_private(root, path):
    relative = path.relative_to(root / "src")
    layer = relative.parts[0]
    if layer not in LAYERS + LEAVES or len(relative.parts) < 2:
        yield 1, f"src/{relative} is in no layer; the layers are {', '.join(LAYERS + LEAVES)}"
        return
    text = path.read_text(encoding="utf-8")
    for line, name, quoted in includes(text):
        objection = foreign_objection(name, layer)
        if objection is None and quoted:
            objection = quoted_objection(root, path, name, layer)
        elif objection is None and name.startswith("sinew/"):
            objection = public_objection(root, name, layer)
        if objection:
            yield line, objection
    once = path.suffix in HEADER_SUFFIXES and not path.stem.endswith("-inl")
    if once and (objection := pragma_objection(text)):
        yield 1, objection


def check_public(root, path):
    layer = PUBLIC.get(path.name)
    if layer is None:
        yield 1, "which layer is this? Name it in PUBLIC of tools/check_layers.py"
        return
    text = path.read_text(encoding="utf-8")
    for line, name, quoted in includes(text):
        if quoted:
            yield line, f'"{name}" in a public header; write <sinew/...>'
        elif name.startswith("sinew/"):
            if objection := public_objection(root, name, layer):
                yield line, objection
        elif not re.fullmatch(r"[a-z_0-9]+", name):
            yield line, f"<{name}> in a public header; only <sinew/...> and the standard library"
    if objection := pragma_objection(text):
        yield 1, objection


def check(root):
    """Every objection as (path, line, text), ordered."""
    found = []
    for folder, checker in (("src", check_private), ("include", check_public)):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES:
                found += [(path.relative_to(root), *objection) for objection in checker(root, path)]
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = Path(sys.argv[1]).resolve()
    if not (root / "src").is_dir() or not (root / "include").is_dir():
        sys.exit(f"{root} has no src/ and include/")
    objections = check(root)
    for path, line, text in objections:
        print(f"{path}:{line}: {text}")
    sys.exit(1 if objections else 0)


if __name__ == "__main__":
    main()
