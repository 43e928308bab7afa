#!/usr/bin/env python3
"""check_layers.py accepts a sound tree and refuses each planted violation, naming it."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECKER = Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"

SOUND = {
    "include/sinew/types.hpp": "// Types.\n#pragma once\n\n#include <cstdint>\n",
    "include/sinew/error.hpp": "/* Two\n   lines. */\n#pragma once\n#include <sinew/types.hpp>\n",
    "include/sinew/schedule.hpp": "#pragma once\n#include <sinew/types.hpp>\n",
    "src/base/text.hpp": "#pragma once\n#include <sinew/error.hpp>\n",
    "src/kernel/lanes-inl.hpp": "#ifdef HWY_TARGET\n#endif\n",
    "src/transport/shm/lane.hpp": '#pragma once\n#include "base/text.hpp"\n#include <fmt/core.h>\n',
    "src/trace/event.hpp": "#pragma once\n",
    "src/model/cost.cpp": '#include "trace/event.hpp"\n',
    "src/runtime/run.cpp": '#include "transport/shm/lane.hpp"\n',
    "src/cli/verbs.hpp": '#pragma once\n#include "transport/shm/lane.hpp"\n',
    "src/cli/main.cpp": '#include "cli/verbs.hpp"\n#include "measure.hpp"\n',
    "src/mpi/transport.cpp": "#include <mpi.h>\n",
    "src/torch/backend.cpp": "#include <torch/torch.h>\n#include <c10/util/Optional.h>\n",
    "bench/measure.hpp": "#pragma once\n",
    "bench/peers/openmpi.cpp": "#include <mpi.h>\n",
}

# What is wrong: the file, its text, and words the objection must hold.
VIOLATIONS = {
    "layer above": ("src/base/a.cpp", '#include "trace/event.hpp"\n', "base may not include"),
    "spaces in the directive": ("src/base/a.cpp", '  #  include  "trace/event.hpp"\n', "base may"),
    "model knows transports": ("src/model/a.cpp", '#include "transport/shm/lane.hpp"\n', "model may"),
    "report knows transports": ("src/report/a.cpp", '#include "transport/shm/lane.hpp"\n', "report"),
    "leaf includes leaf": ("src/mpi/a.cpp", '#include "cli/verbs.hpp"\n', "mpi may not include"),
    "layer includes leaf": ("src/runtime/a.cpp", '#include "cli/verbs.hpp"\n', "runtime may not"),
    "public header of a later layer": ("src/base/a.cpp", "#include <sinew/schedule.hpp>\n", "base may"),
    "mpi.h in the core": ("src/transport/a.cpp", "#include <mpi.h>\n", "leaf mpi"),
    "mpi.h in quotes": ("src/transport/a.cpp", '#include "mpi.h"\n', "leaf mpi"),
    "mpi.h in another leaf": ("src/cli/a.cpp", "#include <mpi.h>\n", "leaf mpi"),
    "torch in the core": ("src/compress/a.cpp", "#include <torch/torch.h>\n", "leaf torch"),
    "ATen in the core": ("src/compress/a.cpp", "#include <ATen/ATen.h>\n", "leaf torch"),
    "c10 in the core": ("src/compress/a.cpp", "#include <c10/util/Half.h>\n", "leaf torch"),
    "CUDA in the core": ("src/kernel/a.cpp", "#include <cuda_runtime.h>\n", "leaf cuda"),
    "pybind11 in the core": ("src/report/a.cpp", "#include <pybind11/pybind11.h>\n", "leaf python"),
    "hidden layer": ("src/cli/a.cpp", '#include "verbs.hpp"\n', "relative to src/"),
    "quotes for a stranger": ("src/base/a.cpp", '#include "fmt/core.h"\n', "use <>"),
    "bench outside the program": ("src/runtime/a.cpp", '#include "measure.hpp"\n', "use <>"),
    "no such public header": ("src/base/a.cpp", "#include <sinew/nothing.hpp>\n", "no public header"),
    "unknown layer": ("src/misc/a.cpp", "\n", "in no layer"),
    "file beside the layers": ("src/a.cpp", "\n", "in no layer"),
    "private header without pragma": ("src/base/a.hpp", "// A.\n#include <vector>\n", "#pragma once"),
    "include guard": ("src/base/a.hpp", "#ifndef A\n#define A\n#endif\n", "#pragma once"),
    "pragma in a comment": ("src/base/a.hpp", "// #pragma once\n", "no #pragma once"),
    "library in a public header": (
        "include/sinew/types.hpp", "#pragma once\n#include <fmt/core.h>\n", "public header"),
    "private header in a public one": (
        "include/sinew/types.hpp", '#pragma once\n#include "base/text.hpp"\n', "public header"),
    "public header looks up": (
        "include/sinew/types.hpp", "#pragma once\n#include <sinew/schedule.hpp>\n", "base may not"),
    "public header without pragma": ("include/sinew/types.hpp", "#include <vector>\n", "#pragma once"),
    "public header of no layer": ("include/sinew/stray.hpp", "#pragma once\n", "PUBLIC"),
}


def run_checker(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return subprocess.run([sys.executable, CHECKER, folder], capture_output=True, text=True)


class CheckLayers(unittest.TestCase):
    def test_accepts_a_sound_tree(self):
        result = run_checker(SOUND)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_refuses_each_violation_and_nothing_else(self):
        for what, (path, text, words) in VIOLATIONS.items():
            with self.subTest(what):
                result = run_checker(SOUND | {path: text})
                lines = result.stdout.splitlines()
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertEqual(len(lines), 1, lines)
                self.assertTrue(lines[0].startswith(path + ":"), lines[0])
                self.assertIn(words, lines[0])

    def test_refuses_a_folder_that_is_no_checkout(self):
        self.assertEqual(run_checker({}).returncode, 1)


if __name__ == "__main__":
    unittest.main()
