"""Sums of CUDA tensors on a GPU that all ranks share, which are added up there.

Needs a GPU: without one it is skipped.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist

import sinew_torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from launch import run_ranks

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
         torch.int16, torch.int32, torch.int64]
# Below, at and above the bytes from which sums stay on the device; one that goes in two pieces.
LEAST = 4 << 20
SIZES = [8, LEAST - 8, LEAST, 3 * LEAST + 8, (64 << 20) + 40]


def value(rank, count, dtype, salt):
    """Small whole numbers: sums are exact in every type, whatever their order."""
    numbers = torch.arange(count, device="cuda") % 5 + rank + salt
    return (numbers % 7).to(dtype)


def expected(count, dtype, salt, size):
    total = value(0, count, dtype, salt)
    for rank in range(1, size):
        total += value(rank, count, dtype, salt)
    return total


def sums(rank, size):
    checked = 0
    for dtype in TYPES:
        for salt, size_in_bytes in enumerate(SIZES):
            count = size_in_bytes // torch.empty(0, dtype=dtype).element_size()
            data = value(rank, count, dtype, salt)
            dist.all_reduce(data)
            assert torch.equal(data, expected(count, dtype, salt, size)), (dtype, count)
            checked += 1
    return checked


def many_at_once(rank, size):
    """Several under way: each is added up in the place that the one before it has left."""
    tensors = [value(rank, LEAST // 4 + 1000 * i, torch.float32, i) for i in range(12)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for i, (tensor, work) in enumerate(zip(tensors, works)):
        work.wait()
        assert torch.equal(tensor, expected(tensor.numel(), torch.float32, i, size)), i
    return len(works)


def in_whichever_thread(rank, size):
    """Who waits runs an operation, or a thread of the backend's: places grow in either."""
    tensors = [value(rank, LEAST // 4 << i, torch.float32, i) for i in range(4)]
    dist.all_reduce(tensors[0])
    works = []
    for tensor in tensors[1:]:
        works.append(dist.all_reduce(tensor, async_op=True))
        time.sleep(0.3)  # long enough for a thread of the backend's to take it
    for i, tensor in enumerate(tensors):
        if i > 0:
            works[i - 1].wait()
        assert torch.equal(tensor, expected(tensor.numel(), torch.float32, i, size)), i
    return len(tensors)


def behind_the_callers_stream(rank, size):
    """A sum takes what was still being computed when it was issued, and whoever waits gets it."""
    ones = torch.ones(LEAST, device="cuda")
    for i in range(20):
        data = torch.zeros(LEAST, device="cuda")
        torch.cuda._sleep(2_000_000)
        data += ones
        dist.all_reduce(data)
        data *= 2
        assert torch.equal(data, ones * (2 * size)), i
    return 20


def ranks_agree_bit_for_bit(rank, size):
    torch.manual_seed(rank)
    data = torch.randn(LEAST + 7, device="cuda")
    dist.all_reduce(data)
    gathered = [torch.empty_like(data) for _ in range(size)]
    dist.all_gather(gathered, data)
    assert all(torch.equal(one, data) for one in gathered)
    return 1


def groups(rank, size):
    """Each group has its places; those of a group that is gone serve the next."""
    for turn in range(6):
        low = dist.new_group(list(range(size // 2)))
        mine = low if rank < size // 2 else None
        if mine is not None:
            data = value(rank, LEAST, torch.float32, turn)
            dist.all_reduce(data, group=mine)
            assert torch.equal(data, expected(LEAST, torch.float32, turn, size // 2)), turn
            assert sinew_torch.sums_on_device(mine) == (1 if size // 2 > 1 else 0)
            dist.destroy_process_group(mine)
    return 6


def with_gaps(rank, size):
    """On one rank the tensor lies in one piece, on the others it does not."""
    wide = torch.zeros(2 * LEAST, device="cuda")
    data = torch.zeros(LEAST, device="cuda") if rank == 0 else wide[::2]
    data.copy_(value(rank, LEAST, torch.float32, 3))
    dist.all_reduce(data)
    assert torch.equal(data, expected(LEAST, torch.float32, 3, size))
    assert not wide[1::2].any()
    return 1


def different(rank, size):
    """Ranks that sum tensors of other sizes or types are told so, whichever of them they are."""
    told = 0
    for wrong in (torch.ones(LEAST + 1000, device="cuda"),
                  torch.ones(LEAST, device="cuda", dtype=torch.int32)):
        group = dist.new_group(list(range(size)))
        right = torch.ones(LEAST, device="cuda")
        dist.all_reduce(right, group=group)
        try:
            dist.all_reduce(wrong if rank == 1 else right, group=group)
        except sinew_torch.SinewError as error:
            assert "all_reduce" in str(error), error
            told += 1
    assert told == 2, told
    return told


def refused_by_one(rank, size):
    """Where one rank cannot share its device, all go through the host and get the same sums."""
    data = value(rank, LEAST, torch.float32, 1)
    dist.all_reduce(data)
    assert torch.equal(data, expected(LEAST, torch.float32, 1, size))
    return 1


CASES = {case.__name__: case for case in (sums, many_at_once, in_whichever_thread,
                                          behind_the_callers_stream, ranks_agree_bit_for_bit,
                                          groups, with_gaps, different, refused_by_one)}
# How many of them are added up on the device; of groups of their own it is asked in the case.
ON_DEVICE = {"sums": 3 * len(TYPES), "many_at_once": 12, "in_whichever_thread": 4,
             "behind_the_callers_stream": 20, "ranks_agree_bit_for_bit": 1, "with_gaps": 1}


def main(case):
    if case == "refused_by_one" and os.environ["RANK"] == "1":
        os.environ["SINEW_SHARED_DEVICE"] = "0"
    torch.cuda.set_device(0)
    dist.init_process_group(os.environ["BACKEND"])
    done = CASES[case](dist.get_rank(), dist.get_world_size())
    dist.barrier()
    on_device = sinew_torch.sums_on_device()
    dist.destroy_process_group()
    print(json.dumps([done, on_device]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
        sys.exit()
    if not torch.cuda.is_available():
        print("no GPU here")
        sys.exit(77)
    for name in CASES:
        for size in (2, 8):
            results = run_ranks(name, size, timeout=240)
            done, on_device = results[0]
            assert all(each[1] == ON_DEVICE.get(name, 0) for each in results), results
            print(f"{name}: {size} ranks, {done} checked, {on_device} added up on the device")
