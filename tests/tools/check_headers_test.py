#!/usr/bin/env python3
"""check_headers.py accepts headers that stand alone and names those that do not."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECKER = Path(__file__).resolve().parents[2] / "tools" / "check_headers.py"

SOUND = {
    "include/sinew/types.hpp": "#pragma once\n#include <vector>\nstd::vector<int> numbers();\n",
    "src/base/text.hpp": "#pragma once\n#include <sinew/types.hpp>\n",
    "src/base/text.cpp": '#include "base/text.hpp"\n',
    "src/base/lanes-inl.hpp": "std::string needs_its_includer();\n",
    "src/mpi/left_out.hpp": "#pragma once\n#include <no_such_library.h>\n",
}


def run_checker(files, compiled="src/base/text.cpp"):
    with tempfile.TemporaryDirectory(prefix="with space ") as folder:
        root = Path(folder).resolve()
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        source = str(root / compiled)
        command = f"c++ '-I{root}/include' '-I{root}/src' -std=c++20 -o text.o -c '{source}'"
        entry = {"directory": folder, "file": source, "command": command}
        (root / "compile_commands.json").write_text(json.dumps([entry]), encoding="utf-8")
        return subprocess.run([sys.executable, CHECKER, root, root], capture_output=True, text=True)


class CheckHeaders(unittest.TestCase):
    def test_knows_the_flags_of_sources_that_are_compiled_as_one(self):
        together = {"Unity/unity_0.cxx": '#include "../src/base/text.cpp"\n'}
        result = run_checker(SOUND | together, "Unity/unity_0.cxx")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("2 of 2 headers", result.stdout)

    def test_accepts_headers_that_stand_alone(self):
        result = run_checker(SOUND)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("2 of 2 headers", result.stdout)

    def test_names_a_header_that_leans_on_its_includer(self):
        for name in ("include/sinew/leans.hpp", "src/base/leans.hpp"):
            with self.subTest(name):
                result = run_checker(SOUND | {name: "#pragma once\nstd::string text();\n"})
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(f"{name} does not compile on its own", result.stdout)


if __name__ == "__main__":
    unittest.main()
