"""Runs a function in several processes that share a group: what the Python tests are built on.

A test file calls run_ranks("case", size) in its parent; each rank is this same file again, with the
case as its argument, and what main(case) prints as one JSON line is what run_ranks returns.
"""

import json
import os
import socket
import subprocess
import sys
import time

#: Where tensors of the tests are: set SINEW_TEST_DEVICE=cuda to have them on a GPU.
DEVICE = os.environ.get("SINEW_TEST_DEVICE", "cpu")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_ranks(case, size, backend="sinew", script=None, extra=None):
    """The processes, with plain environment variables as a cluster would set them."""
    script = script or sys.argv[0]
    port = free_port()
    ranks = []
    for rank in range(size):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank),
                           LOCAL_WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1",
                           MASTER_PORT=str(port), BACKEND=backend, OMP_NUM_THREADS="1",
                           OPENBLAS_NUM_THREADS="1", PYTHONFAULTHANDLER="1",
                           PYTHONWARNINGS="ignore", **(extra or {}))
        ranks.append(subprocess.Popen([sys.executable, script, case], env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    return ranks


def finish(ranks, timeout=120, killed=()):
    """What each rank printed last, as JSON; None for those that are meant to be killed."""
    deadline = time.monotonic() + timeout
    results = []
    for number, rank in enumerate(ranks):
        try:
            out, errors = rank.communicate(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            for one in ranks:
                one.kill()
            raise AssertionError(f"rank {number} did not end within {timeout} s")
        if number in killed:
            results.append(None)
            continue
        assert rank.returncode == 0, \
            f"rank {number} ended with {rank.returncode}:\n{errors[-3000:]}"
        lines = out.strip().splitlines()
        results.append(json.loads(lines[-1]) if lines else None)
    return results


def run_ranks(case, size, backend="sinew", timeout=120, extra=None):
    return finish(start_ranks(case, size, backend, extra=extra), timeout)
