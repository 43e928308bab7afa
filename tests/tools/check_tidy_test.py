#!/usr/bin/env python3
"""check_tidy.py objects to what one of several files looked at as one does, and only to that."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECKER = ROOT / "tools" / "check_tidy.py"
PROGRAM = "clang-tidy-14"

SOUND = {f"src/base/sound_{i}.cpp": f"int sound_{i}() {{ return {i}; }}\n" for i in range(3)}
SAME_NAME = {f"src/base/{name}.cpp": "namespace {\nint same() { return 1; }\n}  // namespace\n"
             f"int {name}() {{ return same(); }}\n" for name in ("one", "two")}
# Only following the paths of a function shows it.
NULL = {"src/base/null.cpp": "int null(bool b) {\n  int *p = nullptr;\n  if (b) return 0;\n  return *p;\n}\n"}
UGLY = {"src/base/ugly.cpp": "int *ugly() { return 0; }\n"}


def run_checker(files):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        shutil.copy(ROOT / ".clang-tidy", root)
        entries = []
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            entries.append({"directory": folder, "file": str(path),
                            "command": f"c++ -I{root}/src -std=c++20 -o x.o -c {path}"})
        (root / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
        return subprocess.run([sys.executable, CHECKER, root, root, PROGRAM], capture_output=True,
                              text=True, env={**os.environ, "SINEW_FULL": "1"})


@unittest.skipUnless(shutil.which(PROGRAM), f"no {PROGRAM}")
class CheckTidy(unittest.TestCase):
    def test_accepts_tidy_files(self):
        result = run_checker(SOUND)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("3 files, all tidy", result.stdout)

    def test_names_what_is_not_and_where(self):
        for name, bad, check in (("null", NULL, "clang-analyzer-core.NullDereference"),
                                 ("ugly", UGLY, "modernize-use-nullptr")):
            with self.subTest(name):
                result = run_checker(SOUND | bad)
                self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
                self.assertIn(check, result.stdout)
                self.assertIn(f"{name}.cpp:", result.stdout)

    def test_files_that_do_not_go_together_are_looked_at_apart(self):
        result = run_checker(SOUND | SAME_NAME)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("5 files, all tidy", result.stdout)


if __name__ == "__main__":
    unittest.main()
