#!/usr/bin/env python3
"""The ./sinew script, with stand-ins for apt, sudo, cmake, ninja and ctest: what it asks of them,
what it says when they fail, and what reaches the program."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "sinew"
NOBODY = 65534

# Every stand-in writes its name and arguments to $CALLS.
STANDINS = {
    "dpkg-query": '[[ -e $STATE/installed ]] && for p in "${@:4}"; do echo "installed $p"; done',
    "apt-get": """
        case $1 in
          update) touch "$STATE/lists" ;;
          install) [[ -e $STATE/lists ]] || { echo "E: Unable to locate package"; exit 100; }
                   touch "$STATE/installed" ;;
        esac""",
    "sudo": '[[ $1 == -n ]] && exit 0; exec "$@"',
    "cmake": 'mkdir -p "$2/build/$4/bin" && touch "$2/build/$4/build.ninja"',
    "ninja": """
        if [[ -n ${NINJA_FAILS_WITH:-} ]]; then echo "$NINJA_FAILS_WITH"; exit 1; fi
        printf '#!/bin/bash\\nprintf "[%%s]" "$@"\\nexit 7\\n' >"$2/bin/sinew"
        chmod +x "$2/bin/sinew" """,
    "ctest": 'echo "50% tests passed, 1 tests failed out of 2"; exit 8',
}


class SinewScript(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="a clone ")
        self.addCleanup(scratch.cleanup)
        self.top = Path(scratch.name)
        self.clone, self.state, self.bin = (self.top / name for name in ("clone", "state", "bin"))
        for folder in (self.clone, self.state, self.bin):
            folder.mkdir()
        shutil.copy(SCRIPT, self.clone / "sinew")
        (self.clone / "CMakePresets.json").write_text("{}")
        os.utime(self.clone / "CMakePresets.json", (0, 0))
        for name, body in STANDINS.items():
            (self.bin / name).write_text(f'#!/bin/bash\necho "{name} $*" >>"$CALLS"\n{body}\n')
            (self.bin / name).chmod(0o755)
        for tool in ("bash", "env", "readlink", "dirname", "mkdir", "rm", "cat", "grep", "tail", "cut",
                     "sed", "tee", "nproc", "flock", "touch", "chmod"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.drop = {}
        if os.geteuid() == 0:  # root needs no sudo, so play somebody else
            for path in (self.top, *self.top.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
            self.drop = {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def sinew(self, *arguments, **environment):
        environment |= {"PATH": str(self.bin), "CALLS": str(self.state / "calls"),
                        "STATE": str(self.state)}
        return subprocess.run([self.clone / "sinew", *arguments], cwd="/", env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, **self.drop)

    def calls(self, program):
        path = self.state / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.split()[0] == program]

    def test_without_root_or_sudo_prints_the_line_to_run_and_exits_3(self):
        (self.bin / "sudo").unlink()
        result = self.sinew("list")
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertRegex(result.stderr, r"apt-get install -y --no-install-recommends g\+\+ .*libgloo-dev .*dataset-fashion-mnist .*\n")
        self.assertEqual(self.calls("apt-get"), [])

    def test_fetches_package_lists_only_when_an_install_fails(self):
        (self.state / "lists").touch()
        self.sinew("list")
        self.assertEqual([line.split()[1] for line in self.calls("apt-get")], ["install"])
        for name in ("calls", "lists", "installed"):
            (self.state / name).unlink()
        shutil.rmtree(self.clone / "build")
        self.sinew("list")
        self.assertEqual([line.split()[1] for line in self.calls("apt-get")],
                         ["install", "update", "install"])

    def test_hands_arguments_and_status_through_untouched(self):
        result = self.sinew("bench", "a b", "", "*", "--json")
        self.assertEqual((result.stdout, result.returncode), ("[bench][a b][][*][--json]", 7))

    def test_a_second_call_asks_neither_packages_nor_cmake(self):
        self.sinew("list")
        (self.state / "calls").unlink()
        result = self.sinew("list")
        self.assertEqual((result.stdout, result.stderr), ("[list]", ""))
        self.assertEqual([self.calls(name) for name in ("dpkg-query", "apt-get", "cmake")], [[]] * 3)

    def test_only_test_needs_the_checking_tools(self):
        self.sinew("list")
        self.assertNotIn("clang-tidy-14", self.calls("apt-get")[-1])
        shutil.rmtree(self.clone / "build")
        (self.state / "installed").unlink()
        self.sinew("test")
        self.assertIn("clang-tidy-14", self.calls("apt-get")[-1])

    def test_a_failed_build_names_cause_and_log(self):
        for output, cause in {
            "a.cpp:3:1: error: no such thing": "a.cpp:3:1: error: no such thing",
            "g++: fatal error: Killed signal terminated program cc1plus": "no memory left",
            "fatal error: error writing to a.o: No space left on device": "the disk is full",
            "Could NOT find MPI": "a package is missing",
            "nothing anyone has seen before": "none recognised",
        }.items():
            with self.subTest(output):
                result = self.sinew("list", NINJA_FAILS_WITH=output)
                self.assertEqual((result.returncode, result.stdout), (1, ""))
                self.assertIn(f"  | {output}", result.stderr)
                self.assertIn(f"likely cause: {cause}", result.stderr)
                log = Path(result.stderr.split("full log: ")[1].strip())
                self.assertEqual(log.read_text().strip(), output)

    def test_test_passes_options_to_ctest_and_reports_failure(self):
        result = self.sinew("test", "-R", "ring chain", "--full")
        self.assertEqual(result.returncode, 1)
        for preset in ("release", "dev", "tsan", "fuzz"):
            self.assertIn(f"{preset}: 50% tests passed", result.stdout)
        self.assertEqual(len(self.calls("ctest")), 4)
        self.assertTrue(all(line.endswith("-R ring chain") for line in self.calls("ctest")))

    def test_help_needs_no_build(self):
        for arguments in ([], ["help"], ["--help"]):
            with self.subTest(arguments):
                result = self.sinew(*arguments)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn("./sinew test", result.stdout)
        self.assertEqual(self.calls("ninja"), [])


if __name__ == "__main__":
    unittest.main()
