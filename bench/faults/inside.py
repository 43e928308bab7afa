"""One job of bench/faults, inside namespaces of its own: starts it, hurts it, watches it, and
prints what happened as JSON.   inside.py BUILD SYSTEM CASE ELEMENTS TRIAL

It is process 1 here, so orphans are its children, and when it ends the kernel ends everybody.
"""
import glob
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

RANKS = 4
DEADLINE_MS = 2000   # asked of the systems that have deadlines
LIMIT_S = 4          # after which a rank that has said nothing hangs
DIARIES = pathlib.Path("/tmp/faults")
OURS = pathlib.Path(__file__).resolve().parents[2]
IN_TMP = pathlib.Path("/tmp") in OURS.parents
PROBES = {"HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "random": random.Random(1).randbytes(64),
          "empty": b"", "byte": b"x", "zeros": bytes(64), "ones": b"\xff" * 64,
          "TLS": b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03" + bytes(40)}


def make_place():
    here = os.open(OURS, os.O_PATH)
    for folder in ("/dev/shm", "/tmp"):
        subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    if IN_TMP:  # what is to be started lies there
        OURS.mkdir(parents=True)
        # As it is: as a path it would be that of the folder made above.
        subprocess.run(["mount", "--no-canonicalize", "--bind", f"/proc/self/fd/{here}", OURS],
                       check=True, pass_fds=[here])
    os.close(here)
    subprocess.run(["mount", "-t", "proc", "none", "/proc"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    DIARIES.mkdir()


class Job:
    """The processes of one job, started as its users start them."""

    def __init__(self, build, system, case, elements):
        program = pathlib.Path(build) / "libexec/sinew" / f"sinew-fault-{system.split('-')[0]}"
        words = [str(program), case, str(elements), str(DEADLINE_MS)]
        self.environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", "FAULTS_FOLDER": str(DIARIES)}
        self.out = open("/tmp/faults/output", "wb")
        for old in DIARIES.iterdir():
            if old.is_dir():
                subprocess.run(["rm", "-r", str(old)], check=True)
            elif old.name != "output":
                old.unlink()
        if system == "openmpi":
            self.processes = [self.start(["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe",
                                          "-n", str(RANKS), *words])]
        elif system == "mpich":
            self.processes = [self.start(["mpirun.mpich", "-n", str(RANKS), *words])]
        else:
            (DIARIES / "meeting").mkdir()
            self.processes = [self.start(words, self.place(system, rank)) for rank in range(RANKS)]

    @staticmethod
    def place(system, rank):
        if system == "gloo":
            return {"RANK": str(rank), "WORLD_SIZE": str(RANKS)}
        return {"SINEW_RANK": str(rank), "SINEW_SIZE": str(RANKS), "SINEW_TOKEN": "ab" * 32,
                "SINEW_RENDEZVOUS": "tcp://127.0.0.1:24680",
                "SINEW_TRANSPORT": system.split("-")[1]}

    def start(self, words, extra=None):
        return subprocess.Popen(words, env={**self.environment, **(extra or {})}, stdout=self.out,
                                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def diary(self, rank):
        """[(seconds, event, text)]"""
        path = DIARIES / str(rank)
        lines = path.read_text().splitlines() if path.exists() else []
        return [(int(t) / 1e9, event, text) for t, event, text in (l.split(" ", 2) for l in lines)]

    def pid(self, rank):
        return next((int(text) for _, event, text in self.diary(rank) if event == "pid"), None)

    def wait_until_ready(self):
        until = time.monotonic() + 20
        while time.monotonic() < until:
            if all(any(e == "ready" for _, e, _ in self.diary(r)) for r in range(RANKS)):
                return
            time.sleep(0.01)
        told = [path.read_text() for path in DIARIES.iterdir() if path.is_file()]
        raise SystemExit("the job did not begin: " + " ".join(told))

    def said(self):
        return pathlib.Path("/tmp/faults/output").read_bytes().decode(errors="replace")

    def end(self):
        """Whoever is left is killed; gives back how many that were."""
        reap()
        left = [pid for pid in processes() if pid != os.getpid()]
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        until = time.monotonic() + 5
        while [p for p in processes() if p != os.getpid()] and time.monotonic() < until:
            reap()
            time.sleep(0.01)
        self.out.close()
        return len(left)


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass
    except ChildProcessError:
        pass


def alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def watch(job, ranks, since):
    """Until each of the ranks has ended, or time is up: when and how."""
    pids = {rank: job.pid(rank) for rank in ranks}
    gone = {}
    while time.monotonic() < since + LIMIT_S and len(gone) < len(ranks):
        reap()
        for rank in ranks:
            if rank not in gone and not alive(pids[rank]):
                gone[rank] = time.monotonic()
        time.sleep(0.001)
    return {rank: fate(job.diary(rank), gone.get(rank), since) for rank in ranks}


def fate(diary, gone, since):
    events = [(t, e, x) for t, e, x in diary if t >= since - 1]
    error = next(((t, x) for t, e, x in events if e == "error"), None)
    story = {"said": [e for _, e, _ in events if e in ("right", "wrong", "next-right", "next-wrong")]}
    if error:
        return {**story, "what": "error", "after_s": error[0] - since, "text": error[1]}
    if gone is None:
        return {**story, "what": "hangs"}
    finished = any(e.startswith("next-") for _, e, _ in events)
    return {**story, "what": "finished" if finished else "killed", "after_s": gone - since}


def left_behind():
    files = [f for folder in ("/dev/shm", "/tmp") for f in glob.glob(f"{folder}/*")
             if f != str(DIARIES) and not f.startswith("/tmp/sinew-")  # the user's secret stays
             and not (IN_TMP and OURS.is_relative_to(f))]
    segments = pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return files + [f"SysV segment {line.split()[1]}" for line in segments]


def hurt(job, number, trial):
    """One rank, at a random moment of a job in full run."""
    chance = random.Random(trial)
    job.wait_until_ready()
    victim = chance.randrange(RANKS)
    time.sleep(chance.random() * 0.1)
    since = time.monotonic()
    os.kill(job.pid(victim), number)
    fates = watch(job, [rank for rank in range(RANKS) if rank != victim], since)
    time.sleep(0.2)  # for what launchers say last
    return {"victim": victim, "fates": fates, "said": job.said()[-3000:]}


def mismatch(job):
    job.wait_until_ready()
    until = time.monotonic() + 5
    called = []
    while len(called) < RANKS and time.monotonic() < until:
        called = [t for rank in range(RANKS) for t, event, _ in job.diary(rank) if event == "calls"]
        time.sleep(0.001)
    since = max(called)
    fates = watch(job, range(RANKS), since)
    return {"victim": 1, "fates": fates, "said": job.said()[-3000:]}


def listeners():
    """(address, port) of every listening socket here."""
    found = set()
    for table, family in (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6)):
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A":
                address, port = local.split(":")
                raw = b"".join(bytes.fromhex(address[i:i + 8])[::-1] for i in range(0, len(address), 8))
                found.add((socket.inet_ntop(family, raw), int(port, 16)))
    return sorted(found)


def beats(job):
    return sum(1 for _, event, _ in job.diary(0) if event == "beat")


def knock(address, words):
    host = "::1" if ":" in address[0] else "127.0.0.1"
    try:
        with socket.create_connection((host, address[1]), timeout=1) as stranger:
            stranger.sendall(words)
            stranger.settimeout(0.1)
            if words:
                stranger.recv(100)
    except OSError:
        pass


def strangers(build, system):
    """Every probe at every listening socket of a running job; a job that ends is started again."""
    answer = {"probes": 0, "ended": [], "listeners": []}
    job = None
    for name, words in PROBES.items():
        if job is None:
            job = Job(build, system, "loop", 1000)
            job.wait_until_ready()
            answer["listeners"] = [f"{host}:{port}" for host, port in listeners()]
        for address in listeners():
            answer["probes"] += 1
            before = beats(job)
            knock(address, words)
            until = time.monotonic() + 3
            while beats(job) <= before + 2 and time.monotonic() < until:
                time.sleep(0.02)
            if beats(job) <= before + 2:
                answer["ended"].append(f"{name} at {address[0]}")
                job.end()
                job = None
                break
    if job is not None:
        job.end()
    return answer


def main():
    build, system, case, elements, trial = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    make_place()
    if case == "strangers":
        print(json.dumps(strangers(build, system)))
        return
    job = Job(build, system, "loop" if case in ("kill", "stop") else case, elements)
    if case in ("kill", "stop"):
        told = hurt(job, signal.SIGKILL if case == "kill" else signal.SIGSTOP, trial)
    else:
        told = mismatch(job)
    hanging = case == "stop" or any(f["what"] == "hangs" for f in told["fates"].values())
    time.sleep(0.2)
    killed = job.end()
    print(json.dumps({**told, "processes_left": 0 if hanging else killed,
                      "files_left": len(left_behind())}))


if __name__ == "__main__":
    main()
