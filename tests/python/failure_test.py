"""What goes wrong reaches Python as one family of exceptions that name who and what, in time."""

import json
import os
import select
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from launch import finish, run_ranks, start_ranks


def told(error):
    return {"type": type(error).__name__, "text": str(error), "code": error.code,
            "rank": error.rank, "peer": error.peer, "op": error.op, "sequence": error.sequence}


def train_forever(sinew_torch):
    """DDP until somebody dies; what is raised, and how long after the victim's last sign."""
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(nn.Linear(500, 500))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rank = dist.get_rank()
    try:
        for step in range(1_000_000):
            optimizer.zero_grad()
            model(torch.ones(8, 500)).sum().backward()
            optimizer.step()
            if rank == 1 and step == 20:
                with open(os.environ["SIGN"], "w") as sign:
                    sign.write(str(time.monotonic()))
                os.kill(os.getpid(), signal.SIGKILL)
    except sinew_torch.SinewError as error:
        with open(os.environ["SIGN"]) as sign:
            killed = float(sign.read())
        return dict(told(error), killed=killed, raised=time.monotonic())
    return None


def different_sizes(sinew_torch):
    try:
        dist.all_reduce(torch.ones(10 + dist.get_rank()))
        dist.all_reduce(torch.ones(1))
    except sinew_torch.SinewError as error:
        return told(error)
    return None


def different_order(sinew_torch):
    try:
        if dist.get_rank() == 0:
            dist.all_reduce(torch.ones(4))
            dist.broadcast(torch.ones(4), 0)
        else:
            dist.broadcast(torch.ones(4), 0)
            dist.all_reduce(torch.ones(4))
    except sinew_torch.SinewError as error:
        return told(error)
    return None


def impatiently(sinew_torch, operation):
    """What rank 0 is told of an operation that rank 1 takes no part in, and after how long."""
    from datetime import timedelta
    group = dist.new_group([0, 1], timeout=timedelta(seconds=1))
    if dist.get_rank() == 1:
        time.sleep(2.5)
        return None
    begin = time.monotonic()
    try:
        operation(group)
    except sinew_torch.SinewError as error:
        return dict(told(error), after=time.monotonic() - begin)
    return None


def too_late(sinew_torch):
    return impatiently(sinew_torch, lambda group: dist.all_reduce(torch.ones(4), group=group))


def nobody_sends(sinew_torch):
    return impatiently(sinew_torch, lambda group: dist.recv(torch.ones(4), group=group, tag=7))


def all_others_leave(sinew_torch):
    """Rank 0 takes what was sent before the others left, and then asks for more."""
    if dist.get_rank() != 0:
        dist.send(torch.full((4,), float(dist.get_rank())), 0, tag=5)
        dist.destroy_process_group()
        return None
    took = []
    for _ in range(1, dist.get_world_size()):
        tensor = torch.zeros(4)
        took.append([dist.recv(tensor, tag=5), int(tensor[0])])
    try:
        dist.recv(torch.zeros(4), tag=5)
    except sinew_torch.SinewError as error:
        return dict(told(error), took=took)
    return None


def aborted(sinew_torch):
    begin = time.monotonic()
    try:
        if dist.get_rank() == 0:
            work = dist.all_reduce(torch.ones(4), async_op=True)
            time.sleep(0.3)
            sinew_torch.abort()
            work.wait()
        else:
            time.sleep(0.6)
            for _ in range(2):  # rank 0 may have left its part of the first before it gave up
                dist.all_reduce(torch.ones(4))
    except sinew_torch.SinewError as error:
        return dict(told(error), after=time.monotonic() - begin)
    return None


def bad_arguments(sinew_torch):
    texts = []
    for call in (lambda: dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND),
                 lambda: dist.all_gather([torch.ones(3)], torch.ones(3)),
                 lambda: dist.all_reduce(torch.eye(3).to_sparse()),
                 lambda: dist.recv(torch.eye(3).to_sparse())):
        try:
            call()
            texts.append("accepted")
        except (ValueError, RuntimeError) as error:
            texts.append(str(error))
    dist.barrier()  # and the group is as good as before
    return texts


def main(case):
    torch.set_num_threads(1)
    import sinew_torch
    dist.init_process_group("sinew")
    print(json.dumps(globals()[case](sinew_torch)), flush=True)
    os._exit(0)  # without a farewell, as programs end that failed


def note_death(process, times):
    """Appends when the process was gone, by the clock that all processes share."""
    descriptor = os.pidfd_open(process.pid)
    select.select([descriptor], [], [])
    times.append(time.monotonic())
    os.close(descriptor)


def test_kill():
    for size in (2, 4):
        sign = f"/tmp/sinew_failure_test.{os.getpid()}"
        ranks = start_ranks("train_forever", size, extra={"SIGN": sign})
        died = []
        watch = threading.Thread(target=note_death, args=(ranks[1], died))
        watch.start()
        results = finish(ranks, killed=(1,))
        watch.join()
        os.remove(sign)
        for rank, one in enumerate(results):
            if rank == 1:
                continue
            assert one["type"] == "PeerLostError" and one["peer"] == 1 and one["rank"] == rank, one
            assert "rank 1" in one["text"] and one["op"] == "allreduce" and one["sequence"] > 0, one
            # Nobody can know of a death before the kernel has finished it.
            one["after"] = one["raised"] - died[0]
            assert one["after"] < 1.0, (one, died[0] - one["killed"])
        slowest = max(one["raised"] - one["killed"] for one in results if one)
        print(f"kill -9 of 1 of {size}: all others raised within {slowest * 1000:.0f} ms: "
              f"{results[0]['text']}")


def test_mismatch():
    for case in ("different_sizes", "different_order"):
        results = run_ranks(case, 2)
        assert any(one and one["code"] == "mismatch" for one in results), results
        assert all(one is not None for one in results), results
        text = next(one["text"] for one in results if one["code"] == "mismatch")
        assert "rank 0" in text and "rank 1" in text, text
        print(f"{case}: {text}")


def test_timeout():
    late = run_ranks("too_late", 2)[0]
    assert late["type"] == "OperationTimeoutError" and 0.9 < late["after"] < 2.0, late
    assert "rank 1" in late["text"], late
    print(f"timeout: {late['text']}")


def test_recv_from_anybody():
    late = run_ranks("nobody_sends", 2)[0]
    assert late["type"] == "OperationTimeoutError" and 0.9 < late["after"] < 2.0, late
    assert "recv from any rank with tag 7" in late["text"], late
    left = run_ranks("all_others_leave", 3)[0]
    assert sorted(left["took"]) == [[1, 1], [2, 2]], left
    assert left["type"] == "PeerLostError" and "all others have left" in left["text"], left
    print(f"recv from anybody: {late['text']}; {left['text']}")


def test_abort():
    for one in run_ranks("aborted", 2):
        assert one["code"] == "peer_lost" and "aborted" in one["text"] and one["after"] < 2, one
    print("abort: every rank raised")


def test_bad_arguments():
    texts = run_ranks("bad_arguments", 2)[0]
    for text, word in zip(texts, ("convert", "2 ranks", "sparse", "sparse")):
        assert word in text, (word, text)
    print("bad arguments: refused, and the group goes on")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        for test in (test_kill, test_mismatch, test_timeout, test_recv_from_anybody, test_abort, test_bad_arguments):
            test()
