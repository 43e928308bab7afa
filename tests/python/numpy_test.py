"""The package `sinew`: collectives on arrays, messages, plain answers, frames."""

import json
import os
import subprocess
import sys
import tempfile

import numpy

import sinew

TYPES = ["float32", "float64", "float16", "int8", "uint8", "int32", "int64", "uint64"]


def refused(call, *words):
    try:
        call()
    except (sinew.Error, TypeError, ValueError) as error:
        assert all(word in str(error) for word in words), str(error)
        return error
    raise AssertionError("accepted")


def collectives(c):
    size, me = c.size, c.rank
    for dtype in TYPES:
        mine = numpy.arange(12, dtype=dtype) % 5 + me
        every = [numpy.arange(12, dtype=dtype) % 5 + r for r in range(size)]
        total = sum(every[1:], every[0])
        data = mine.copy()
        c.allreduce(data)
        assert (data == total).all()
        c.allreduce(mine, data, op="max")
        assert (data == every[-1]).all()
        out = numpy.zeros((size, 12), dtype)
        c.allgather(mine, out)
        assert (out == numpy.stack(every)).all()
        out = numpy.zeros(12, dtype)
        c.reduce(mine, out, root=1)
        assert me != 1 or (out == total).all()
        data = mine.copy()
        c.broadcast(data, root=size - 1)
        assert (data == every[-1]).all()
        part = numpy.zeros(12, dtype)
        c.reduce_scatter(numpy.concatenate([mine] * size), part)
        assert (part == total).all()
        out = numpy.zeros((size, 4), dtype)
        c.alltoall(numpy.repeat(numpy.arange(size), 4).astype(dtype) + me, out)
        assert (out == (numpy.arange(size)[:, None] + me)).all()
        out = numpy.zeros((size, 12), dtype)
        c.gather(mine, out if me == 0 else None, root=0)
        assert me != 0 or (out == numpy.stack(every)).all()
        part = numpy.zeros(12, dtype)
        c.scatter(numpy.stack(every) if me == 0 else None, part, root=0)
        assert (part == mine).all()
    ragged(c)
    c.barrier()


def ragged(c):
    counts = [r + 1 for r in range(c.size)]
    out = numpy.zeros(sum(counts), numpy.int32)
    c.allgather(numpy.full(c.rank + 1, c.rank, numpy.int32), out, counts)
    assert (out == numpy.repeat(numpy.arange(c.size), counts)).all()
    sends = [r + c.rank for r in range(c.size)]  # rank i has i + j for rank j
    out = numpy.zeros(sum(sends), numpy.int32)
    c.alltoall(numpy.repeat(numpy.arange(c.size, dtype=numpy.int32), sends), out, sends, sends,
               likely_bytes=100)
    assert (out == c.rank).all()
    raw = bytearray(b"\x01" * 8)  # any buffer will do
    c.allreduce(raw)
    assert raw == bytearray([c.size] * 8)


def messages(c):
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    mine, theirs = numpy.full(5, c.rank, numpy.float64), numpy.empty(5)
    c.sendrecv(mine, right, theirs, left, tag=9)
    assert (theirs == left).all()
    requests = [c.irecv(theirs, left, tag=4), c.isend(mine, right, tag=4)]
    sinew.wait_all(requests)
    assert all(request.test() for request in requests)
    assert (theirs == left).all()
    half = c.split(c.rank % 2)
    data = numpy.ones(3, numpy.float32)
    half.allreduce(data)
    assert (data == half.size).all()


def test_ranks_as_threads():
    sinew.run_local(4, collectives)
    sinew.run_local(4, messages)


def test_bad_input():
    def one(c):
        refused(lambda: c.allreduce(numpy.ones(4, numpy.int16)), "'h'", "knows")
        refused(lambda: c.allreduce(numpy.ones((4, 4), numpy.float32).T[1:]), "ascontiguousarray")
        refused(lambda: c.allreduce(b"12345678"), "read-only")
        refused(lambda: c.allgather(numpy.ones(4), numpy.ones(5)), "8 are needed")
        refused(lambda: c.allreduce(numpy.ones(4), wrong=1), "wrong")
        error = refused(lambda: c.allreduce(numpy.ones(4), op="summ"), "sum")
        assert error.code == "invalid_argument"
        bf16 = numpy.full(4, 0x3F80, numpy.uint16)  # 1.0
        c.allreduce(bf16, dtype="bf16")
        assert (bf16 == 0x4000).all()
    sinew.run_local(2, one)


def test_answers():
    answer = sinew.verify("allreduce", "ring", 5)
    assert answer["ok"] and answer["fault"] is None
    assert "rank" in sinew.draw("allreduce", "ring", 4) or sinew.draw("allreduce", "ring", 4)
    assert sinew.draw("allreduce", "ring", 4, format="svg").startswith("<svg")
    best = sinew.predict("allreduce", 8, 1 << 20, "alpha=5us,bw=25GB/s")
    assert best == sorted(best, key=lambda one: one["time_us"]) and best[0]["time_us"] > 0
    assert {"ring", "binomial"} & {one["algorithm"] for one in best}
    refused(lambda: sinew.verify("allreduce", "rign", 4), "ring")
    assert any(one["scheme"] == "oktopk" for one in sinew.schemes())
    assert any(one["algorithm"] == "ring" for one in sinew.algorithms())


def test_report():
    program = "import numpy, sinew; c = sinew.connect()\n" \
              "for _ in range(50): c.allreduce(numpy.ones(100, numpy.float32))"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.environ["SINEW"], "launch", "-n", "2", "--", sys.executable, "-c",
                        program], check=True, env=dict(os.environ, SINEW_TRACE=folder))
        report = sinew.report(folder)
        assert "allreduce" in json.dumps(report).lower()


def test_frame():
    tensors = {"weight": numpy.random.default_rng(1).normal(size=(30, 40)).astype("float32"),
               "steps": numpy.arange(5), "one": numpy.float64(2.5), "none": numpy.empty((0, 3))}
    for codec in ("none", "lz4", "zstd", "zlib"):
        data = sinew.frame.dumps(tensors, {"step": 3}, codec=codec)
        back, metadata = sinew.frame.load(data)
        assert metadata == {"step": 3} and list(back) == list(tensors)
        for name, tensor in tensors.items():
            assert back[name].shape == numpy.shape(tensor) and (back[name] == tensor).all(), name
            assert back[name].dtype == numpy.asarray(tensor).dtype
    alone = sinew.frame.loads(sinew.frame.dumps(tensors["weight"]))
    assert (alone == tensors["weight"]).all()
    plain = sinew.frame.dumps(tensors["weight"])
    view = sinew.frame.loads(plain)
    assert view.base is not None and not view.flags.writeable  # no copy
    broken = bytearray(plain)
    broken[-7] ^= 1
    refused(lambda: sinew.frame.loads(bytes(broken)), "checksum")
    refused(lambda: sinew.frame.loads(plain[:-1]))


if __name__ == "__main__":
    for test in (test_ranks_as_threads, test_bad_input, test_answers, test_report, test_frame):
        test()
        print(f"{test.__name__}: right")
