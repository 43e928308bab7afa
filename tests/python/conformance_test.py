"""Every collective x type x group x async form, against what it must give, on sinew and on gloo.

What gloo can do, both do with equal bits; what it cannot, it must refuse, and sinew must do right.
"""

import hashlib
import json
import os
import sys

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from launch import DEVICE, run_ranks

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
         torch.int32, torch.int64, torch.int16]
MOVED_TYPES = TYPES + [torch.bool, torch.complex64]
NOT_IN_GLOO = [torch.bfloat16, torch.int16, torch.bool, torch.complex64]
SHAPES = [(), (7,), (3, 4), (0,), (33, 31)]
FULL = os.environ.get("SINEW_FULL") == "1"


def value(rank, shape, dtype, salt=0):
    """Small whole numbers, different for each rank: sums and products of few are exact."""
    count = int(torch.tensor(shape).prod()) if shape else 1
    numbers = (torch.arange(count) * 7 + rank * 3 + salt) % 3 + 1
    return numbers.reshape(shape).to(dtype)


def combine(op, tensors):
    wide = torch.stack([t.to(torch.float64) if t.is_floating_point() else t.to(torch.int64)
                        for t in tensors])
    if op == "SUM":
        result = wide.sum(0)
    elif op == "PRODUCT":
        result = wide.prod(0)
    elif op == "MIN":
        result = wide.min(0).values
    elif op == "MAX":
        result = wide.max(0).values
    else:
        result = wide[0]
        for other in wide[1:]:
            result = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or,
                      "BXOR": torch.bitwise_xor}[op](result, other)
    return result.to(tensors[0].dtype)


class Cases:
    """Runs cases in one group and keeps, by name, a hash of what came out or why it was refused."""

    def __init__(self, group, ranks, label):
        self.group, self.ranks, self.label = group, ranks, label
        self.me = ranks.index(dist.get_rank())
        self.size = len(ranks)
        self.results = {}

    def check(self, name, call, outputs, expected):
        """call(async_op) -> Work or None; outputs: what it writes; expected: values or None."""
        before = [t.clone() for t in outputs]
        for asynchronous in (False, True):
            key = f"{self.label} {name} {'async' if asynchronous else 'sync'}"
            for tensor, old in zip(outputs, before):
                tensor.copy_(old)
            try:
                work = call(asynchronous)
                if asynchronous:
                    assert work.wait() is not False
                    # torch 1.13 gives futures for coalesced forms; gloo's work does not always say
                    done = work.done() if hasattr(work, "done") else work.is_completed()
                    assert done or os.environ["BACKEND"] != "sinew", key
            except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
                if os.environ["BACKEND"] == "sinew":
                    raise AssertionError(f"{key}: {error}") from error
                self.results[key] = "refused"
                continue
            for i, (tensor, right) in enumerate(zip(outputs, expected)):
                assert right is None or torch.equal(tensor, right), \
                    f"{key}: output {i} is {tensor}, and should be {right}"
            data = b"".join(t.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
                            if t.numel() and t.dtype is not torch.bool else bytes(t.numel())
                            for t, right in zip(outputs, expected) if right is not None)
            self.results[key] = hashlib.sha256(data).hexdigest()[:16]

    def reductions(self, dtype, shape):
        integer = not dtype.is_floating_point
        ops = ["SUM", "PRODUCT", "MIN", "MAX"] + (["BAND", "BOR", "BXOR"] if integer else [])
        mine = value(self.me, shape, dtype)
        every = [value(r, shape, dtype) for r in range(self.size)]
        text = f"{dtype} {list(shape)}"
        for op in ops:
            tensor = mine.clone()
            self.check(f"all_reduce {op} {text}",
                       lambda a, t=tensor, o=op: dist.all_reduce(t, getattr(dist.ReduceOp, o),
                                                                 self.group, a),
                       [tensor], [combine(op, every)])
        root = self.size - 1
        tensor = mine.clone()
        self.check(f"reduce {text}",
                   lambda a: dist.reduce(tensor, self.ranks[root], group=self.group, async_op=a),
                   [tensor], [combine("SUM", every) if self.me == root else None])
        if os.environ["BACKEND"] == "sinew" and dtype.is_floating_point:
            tensor = mine.clone() * self.size
            self.check(f"all_reduce AVG {text}",
                       lambda a: dist.all_reduce(tensor, dist.ReduceOp.AVG, self.group, a),
                       [tensor], [combine("SUM", every)])
        self.scattered_sums(dtype, shape, text)

    def overflows(self):
        """Sums and products too large for their type keep its lowest bits; values of both signs."""
        for dtype in (torch.int8, torch.int16, torch.int32):
            if os.environ["BACKEND"] == "gloo" and dtype in NOT_IN_GLOO:
                continue
            top = torch.iinfo(dtype).max
            every = [torch.tensor([top, -top - 1, top // 2 + rank, -3 * rank - 1, rank - 1])
                     .to(dtype) for rank in range(self.size)]
            for op in ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"):
                tensor = every[self.me].clone()
                self.check(f"all_reduce {op} {dtype} that overflows",
                           lambda a, t=tensor, o=op: dist.all_reduce(
                               t, getattr(dist.ReduceOp, o), self.group, a),
                           [tensor], [combine(op, every)])
            self.uneven_sums(dtype, top)

    def uneven_sums(self, dtype, top):
        """Rank `to` gets the sum of what all have for it: to + 1 elements, with a gap between."""
        if os.environ["BACKEND"] != "sinew":
            return
        lists = [[torch.full((to + 1, 2), top - rank * to).to(dtype) for to in range(self.size)]
                 for rank in range(self.size)]
        out = torch.zeros((self.me + 1, 4), dtype=dtype)[:, ::2]
        self.check(f"reduce_scatter {dtype} uneven",
                   lambda a: dist.reduce_scatter(out, lists[self.me], group=self.group, async_op=a),
                   [out], [combine("SUM", [one[self.me] for one in lists])])

    def scattered_sums(self, dtype, shape, text):
        lists = [[value(r, shape, dtype, salt=to) for to in range(self.size)]
                 for r in range(self.size)]
        right = combine("SUM", [lists[r][self.me] for r in range(self.size)])
        out = torch.empty(shape, dtype=dtype)
        out.zero_()
        self.check(f"reduce_scatter {text}",
                   lambda a: dist.reduce_scatter(out, lists[self.me], group=self.group, async_op=a),
                   [out], [right])
        if shape:
            flat = torch.cat(lists[self.me])
            self.check(f"reduce_scatter_tensor {text}",
                       lambda a: dist._reduce_scatter_base(out, flat, group=self.group, async_op=a),
                       [out], [right])

    def moves(self, dtype, shape):
        text = f"{dtype} {list(shape)}"
        root = self.size - 1
        mine = value(self.me, shape, dtype)
        every = [value(r, shape, dtype) for r in range(self.size)]
        tensor = mine.clone()
        self.check(f"broadcast {text}",
                   lambda a: dist.broadcast(tensor, self.ranks[root], self.group, a),
                   [tensor], [every[root]])
        outs = [torch.zeros(shape, dtype=dtype) for _ in every]
        self.check(f"all_gather {text}",
                   lambda a: dist.all_gather(outs, mine, self.group, a), outs, every)
        is_root = self.me == root
        outs = [torch.zeros(shape, dtype=dtype) for _ in every] if is_root else []
        self.check(f"gather {text}",
                   lambda a: dist.gather(mine, outs if is_root else None, self.ranks[root],
                                         self.group, a), outs, every if is_root else [])
        out = torch.zeros(shape, dtype=dtype)
        self.check(f"scatter {text}",
                   lambda a: dist.scatter(out, every if is_root else None, self.ranks[root],
                                          self.group, a), [out], [mine])
        if shape:
            flat = torch.zeros((self.size * shape[0], *shape[1:]), dtype=dtype)
            self.check(f"all_gather_into_tensor {text}",
                       lambda a: dist._all_gather_base(flat, mine, self.group, a),
                       [flat], [torch.cat(every)])
        self.exchanges(dtype, shape, text)

    def exchanges(self, dtype, shape, text):
        to = [value(self.me, shape, dtype, salt=r) for r in range(self.size)]
        right = [value(r, shape, dtype, salt=self.me) for r in range(self.size)]
        outs = [torch.zeros(shape, dtype=dtype) for _ in to]
        self.check(f"all_to_all {text}",
                   lambda a: dist.all_to_all(outs, to, self.group, a), outs, right)
        if shape:
            flat = torch.zeros((self.size * shape[0], *shape[1:]), dtype=dtype)
            self.check(f"all_to_all_single {text}",
                       lambda a: dist.all_to_all_single(flat, torch.cat(to), group=self.group,
                                                        async_op=a), [flat], [torch.cat(right)])

    def uneven(self):
        """Rank r sends r + to + 1 rows to rank `to`."""
        rows = [self.me + to + 1 for to in range(self.size)]
        data = [torch.full((n, 3), float(10 * self.me + to)) for to, n in enumerate(rows)]
        right = torch.cat([torch.full((r + self.me + 1, 3), float(10 * r + self.me))
                           for r in range(self.size)])
        flat = torch.zeros_like(right)
        back = [r + self.me + 1 for r in range(self.size)]
        self.check("all_to_all_single uneven",
                   lambda a: dist.all_to_all_single(flat, torch.cat(data), back, rows, self.group,
                                                    a), [flat], [right])
        outs = [torch.zeros(n, 3) for n in back]
        self.check("all_to_all uneven",
                   lambda a: dist.all_to_all(outs, data, self.group, a), outs,
                   list(right.split(back)))

    def strided(self):
        """Tensors with gaps, and transposed ones."""
        every = [value(r, (4, 6), torch.float32).t() for r in range(self.size)]
        mine = value(self.me, (4, 6), torch.float32).t()
        tensor = torch.empty(4, 6).t()
        tensor.copy_(mine)
        if os.environ["BACKEND"] == "sinew":  # gloo wants them dense
            self.check("all_reduce transposed", lambda a: dist.all_reduce(tensor, group=self.group,
                                                                         async_op=a),
                       [tensor], [combine("SUM", every)])

    def coalesced(self):
        mine = [value(self.me, shape, torch.float32) for shape in ((3,), (2, 2))]
        right = [combine("SUM", [value(r, shape, torch.float32) for r in range(self.size)])
                 for shape in ((3,), (2, 2))]
        if hasattr(dist, "all_reduce_coalesced"):
            self.check("all_reduce_coalesced",
                       lambda a: dist.all_reduce_coalesced(mine, group=self.group, async_op=a),
                       mine, right)
        if hasattr(dist, "all_gather_coalesced"):
            inputs = [value(self.me, shape, torch.float32) for shape in ((3,), (2, 2))]
            lists = [[torch.zeros(3), torch.zeros(2, 2)] for _ in range(self.size)]
            flat = [t for one in lists for t in one]
            every = [value(r, shape, torch.float32) for r in range(self.size)
                     for shape in ((3,), (2, 2))]
            self.check("all_gather_coalesced",
                       lambda a: dist.all_gather_coalesced(lists, inputs, self.group, a),
                       flat, every)

    def messages(self):
        """Everybody to everybody with two tags, sends first: nothing may wait for its turn."""
        out, ins, works = [], [], []
        for tag in (3, 4):
            for other in range(self.size):
                if other == self.me:
                    continue
                out.append(torch.full((50000,), float(100 * tag + self.me)))
                works.append(dist.isend(out[-1], self.ranks[other], self.group, tag))
        for tag in (4, 3):
            for other in range(self.size):
                if other == self.me:
                    continue
                ins.append((torch.zeros(50000), float(100 * tag + other)))
                works.append(dist.irecv(ins[-1][0], self.ranks[other], self.group, tag))
        for work in works:
            work.wait()
        for got, right in ins:
            assert torch.equal(got, torch.full_like(got, right)), (got[0], right)
        self.results[f"{self.label} messages"] = "right"
        if self.size == 1:
            return  # gloo dies of a message to oneself
        if self.me == 0:
            dist.send(torch.arange(5), self.ranks[-1], self.group)
        elif self.me == self.size - 1:
            got = torch.zeros(5, dtype=torch.int64)
            dist.recv(got, self.ranks[0], self.group)
            assert torch.equal(got, torch.arange(5))

    def messages_of_anybody(self):
        """Each rank in turn takes two messages of everybody, not knowing whose comes next."""
        if self.size == 1:
            return
        for taker in range(self.size):
            if self.me != taker:
                for number in (1, 2):
                    numbers = torch.full((30000,), 10 * self.me + number)
                    dist.send(numbers, self.ranks[taker], self.group, tag=6)
            else:
                self.take_of_anybody()
            dist.barrier(self.group)
        self.results[f"{self.label} messages of anybody"] = "right"

    def take_of_anybody(self):
        taken = []
        for number in range(2 * (self.size - 1)):
            got = torch.zeros(30000, dtype=torch.int64)
            if number % 2:
                source = dist.recv(got, group=self.group, tag=6)
            else:
                work = dist.irecv(got, group=self.group, tag=6)
                work.wait()
                source = self.ranks[work._source_rank()]
            assert torch.equal(got, torch.full_like(got, int(got[0]))), got
            taken.append((source, int(got[0])))
        for other in range(self.size):  # those of one rank in their order
            mine = [first for source, first in taken if source == self.ranks[other]]
            assert mine == ([10 * other + 1, 10 * other + 2] if other != self.me else []), taken

    def run_all(self):
        for dtype in TYPES:
            for shape in SHAPES if FULL or dtype is torch.float32 else SHAPES[1:3]:
                if os.environ["BACKEND"] == "gloo" and dtype in NOT_IN_GLOO:
                    continue  # it has no such type, and its moves of it end the process
                self.reductions(dtype, shape)
        self.overflows()
        for dtype in MOVED_TYPES:
            if os.environ["BACKEND"] == "gloo" and dtype in NOT_IN_GLOO:
                continue
            for shape in SHAPES if FULL or dtype is torch.float32 else SHAPES[2:3]:
                if shape == (0,) and os.environ["BACKEND"] == "gloo":
                    continue  # it divides by the size of what is gathered
                self.moves(dtype, shape)
        self.uneven()
        self.strided()
        self.coalesced()
        self.messages()
        self.messages_of_anybody()
        dist.barrier(self.group)
        work = dist.barrier(self.group, async_op=True)
        work.wait()
        return self.results


def futures():
    """The value of a future is the list of results, and callbacks may use the group again."""
    tensor = torch.ones(3)
    work = dist.all_reduce(tensor, async_op=True)
    size = dist.get_world_size()

    def again(future):
        inner = future.value()[0]
        return dist.all_reduce(inner, async_op=True).get_future().wait()[0]

    twice = work.get_future().then(again).wait()
    assert torch.equal(twice, torch.full((3,), float(size * size))), twice


def main(case):
    if DEVICE != "cpu":
        torch.set_default_device(DEVICE)
    if os.environ["BACKEND"] == "sinew":
        import sinew_torch  # noqa: F401
    dist.init_process_group(os.environ["BACKEND"])
    world = list(range(dist.get_world_size()))
    results = Cases(None, world, "all").run_all()
    if len(world) > 2:
        for members in (world[:2], world[1:]):
            group = dist.new_group(members)
            if dist.get_rank() in members:
                results.update(Cases(group, members, f"group {members}").run_all())
    futures()
    dist.barrier()
    print(json.dumps(results))
    dist.destroy_process_group()


def test():
    for size in (1, 2, 3) if not FULL else (1, 2, 3, 4):
        ours = run_ranks("all", size, "sinew")
        theirs = run_ranks("all", size, "gloo", extra={"SINEW_TEST_DEVICE": "cpu"})
        compared = refused = 0
        for rank in range(size):
            for key, result in theirs[rank].items():
                if result == "refused":
                    refused += 1
                    continue
                assert ours[rank][key] == result, f"{size} ranks, rank {rank}, {key}"
                compared += 1
        cases = sum(len(one) for one in ours)
        print(f"{size} ranks, {DEVICE}: {cases} cases right; {compared} equal to gloo's; {refused} that gloo "
              "refuses")
        assert compared > 100 * size


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        test()
