"""bench/faults judges rightly: what it says of fates that are known, and that it runs at all."""
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "faults"))
from outcome import CASES, names, summarize  # noqa: E402

BUILD = pathlib.Path(os.environ.get("SINEW_BUILD", ROOT / "build" / "release"))


def run(*fates, victim=2, launcher_names=False, files=0, processes=0):
    return {"victim": victim, "fates": dict(enumerate(fates)), "launcher_names": launcher_names,
            "files_left": files, "processes_left": processes}


def error(text, after_s=0.01):
    return {"what": "error", "after_s": after_s, "names": names(text, 2), "said": []}


class Outcome(unittest.TestCase):
    def test_a_rank_that_speaks_is_not_a_rank_that_is_named(self):
        self.assertTrue(names("process rank 2 with PID 0 exited on signal 9", 2))
        self.assertTrue(names("rank 0, allreduce #3: rank 2 is gone", 2))
        self.assertFalse(names("rank 2, allreduce #3: rank 0 is gone", 2))
        self.assertFalse(names("Connection closed by peer [127.0.0.1]:2", 2))
        self.assertFalse(names("rank 21 is gone", 2))

    def test_errors_are_counted_and_so_are_names(self):
        text = summarize("kill", [run(error("rank 2 is gone"), error("closed"))])
        self.assertEqual(text, "error to 2 of 2 after 10 ms (most 10 ms), 1 of 2 name the rank")

    def test_wrong_data_and_hanging_are_said(self):
        wrong = {"what": "finished", "said": ["wrong", "next-right"]}
        text = summarize("type", [run(wrong, {"what": "hangs", "said": []})])
        self.assertEqual(text, "**wrong data** to 1 of 2; 1 of 2 hang")

    def test_what_launchers_say_counts_when_ranks_say_nothing(self):
        killed = {"what": "killed", "after_s": 1.0, "said": []}
        self.assertIn("the launcher names", summarize("kill", [run(killed, launcher_names=True)]))
        self.assertIn("nobody is named", summarize("kill", [run(killed)]))

    def test_what_is_left_is_said(self):
        text = summarize("kill", [run(error("x"), files=1, processes=3)])
        self.assertIn("3 processes left; 1 files left", text)

    def test_who_hangs_is_killed_by_us_and_what_that_leaves_does_not_count(self):
        hangs = {"what": "hangs", "said": []}
        self.assertEqual(summarize("stop", [run(hangs, files=5)]), "1 of 1 hang")

    def test_a_run_that_failed_is_no_result(self):
        self.assertIn("could not be run", summarize("kill", [{"failed": "no mpirun"}]))


@unittest.skipUnless((BUILD / "libexec/sinew/sinew-fault-sinew").exists(), "nothing is built")
class Faults(unittest.TestCase):
    def test_a_killed_rank_of_sinew_is_named_by_all(self):
        command = [sys.executable, str(ROOT / "bench/faults/faults.py"), "--build", str(BUILD),
                   "--trials", "1", "--systems", "sinew-tcp", "--cases", "kill,reduction"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        if done.returncode == 3:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 of 3 name the rank", done.stdout)
        self.assertIn(CASES["reduction"].title, done.stdout)
        self.assertIn("8 of 8 name the rank", done.stdout)


if __name__ == "__main__":
    unittest.main()
