"""check_names.py finds two types of one name, and nothing else."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "check_names.py"


def check(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        ran = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True)
        return ran.returncode, ran.stdout


def header(namespace, text):
    return f"namespace {namespace} {{\n{text}\n}}  // namespace {namespace}\n"


class CheckNames(unittest.TestCase):
    def test_two_of_one_name_are_refused(self):
        code, out = check({"src/a/one.hpp": header("sinew::detail", "struct Message {\n};"),
                           "src/b/two.hpp": header("sinew::detail", "class Message final : Base {\n};")})
        self.assertEqual(code, 1)
        self.assertIn("sinew::detail::Message is defined twice: src/a/one.hpp:2 and src/b/two.hpp:2", out)

    def test_other_namespaces_unnamed_ones_and_declarations_may_share_names(self):
        code, out = check({"src/a/one.hpp": header("sinew", "struct Message {\n  struct Part {\n  };\n};\nstruct Later;"),
                           "src/a/two.hpp": header("sinew::wire", "struct Message {\n};\nstruct Later;"),
                           "src/b/one.cpp": header("sinew", "namespace {\nstruct Message {\n};\n}  // namespace"),
                           "src/b/two.cpp": header("sinew", "namespace {\nstruct Message {\n};\n}  // namespace")})
        self.assertEqual((code, out), (0, ""))


if __name__ == "__main__":
    unittest.main()
