"""DDP communication hooks: every scheme, exact state across buckets, no_sync, join and restarts."""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from launch import DEVICE, run_ranks


def make(seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(40, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
                         nn.Linear(64, 3)).to(DEVICE)


def data(rank, step, rows=64):
    generator = torch.Generator().manual_seed(100 * step + rank)
    images = torch.randn(rows, 40, generator=generator).to(DEVICE)
    return images, (images[:, 0] > 0).long() + (images[:, 1] > 0).long()


def wrap(hook=None, **options):
    # Small buckets, so that there are several, and DDP cuts them anew after the first step.
    dist._DEFAULT_FIRST_BUCKET_BYTES = 4096
    ddp = nn.parallel.DistributedDataParallel(make(), bucket_cap_mb=0.01, **options)
    if hook is not None:
        hook.register(ddp)
    return ddp


def step(ddp, optimizer, number):
    optimizer.zero_grad()
    images, labels = data(dist.get_rank(), number)
    loss = nn.functional.cross_entropy(ddp(images), labels)
    loss.backward()
    optimizer.step()
    return float(loss)


def flat(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def equal_on_all_ranks(tensor):
    every = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(every, tensor)
    return all(torch.equal(every[0], other) for other in every)


def optimizer_of(ddp):
    return torch.optim.SGD(ddp.parameters(), lr=0.1)


def every_scheme(hooks):
    """Learns, with equal bits on all ranks; hooks that send everything equal plain DDP."""
    losses = {}
    for name in hooks.schemes:
        options = {"threshold": 1e-4} if name == "threshold" else {}
        hook = hooks.CompressedAllreduce(name, density=0.1, warmup=2, **options)
        ddp = wrap(hook)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.3)
        first = [step(ddp, optimizer, i) for i in range(16)]
        assert equal_on_all_ranks(flat(ddp)), name
        losses[name] = (sum(first[:4]) / 4, sum(first[-4:]) / 4)
        assert hook.reports() and all(r["sent_bytes"] > 0 for r in hook.reports()), name
    plain = wrap()
    optimizer = optimizer_of(plain)
    dense = wrap(hooks.dense())
    dense_optimizer = optimizer_of(dense)
    for i in range(5):
        step(plain, optimizer, i)
        step(dense, dense_optimizer, i)
    apart = float((flat(plain) - flat(dense)).abs().max())
    return {"losses": losses, "dense_apart": apart}


def conservation(hooks):
    """topka keeps what it does not send: sent + kept == came in, over steps and new buckets.

    The mean of what ranks put in equals what came out plus the mean of what is kept.
    """
    hook = hooks.topka(density=0.05)
    ddp = wrap(hook)
    names = [name for name, _ in ddp.module.named_parameters()]
    came_in = {name: torch.zeros_like(p) for name, p in ddp.module.named_parameters()}
    came_out = {name: torch.zeros_like(p) for name, p in ddp.module.named_parameters()}
    layouts = set()
    plain = hook._layout

    def watch(bucket):
        for parameter, gradient in zip(bucket.parameters(), bucket.gradients()):
            came_in[hook._name(parameter)] += gradient
        layouts.add(tuple(hook._name(p) for p in bucket.parameters()))
        return plain(bucket)

    hook._layout = watch
    for i in range(6):
        ddp.zero_grad()
        images, labels = data(dist.get_rank(), i)
        nn.functional.cross_entropy(ddp(images), labels).backward()
        for name, parameter in ddp.module.named_parameters():
            came_out[name] += parameter.grad
    kept = {}
    for bucket in hook.state_dict()["buckets"]:
        for name, shape in zip(bucket["names"], bucket["shapes"]):
            array = next(a for key, (_, a) in bucket["arrays"].items() if key.endswith(name))
            kept[name] = array.reshape(shape).to(DEVICE)
    size = dist.get_world_size()
    worst = 0.0
    for name in names:
        # DDP divides nothing here: the hook's result is the mean already.
        mine = came_in[name] - kept[name]
        dist.all_reduce(mine)
        worst = max(worst, float((mine / size - came_out[name]).abs().max()))
    return {"worst": worst, "layouts": len(layouts)}


def restart(hooks):
    """10 steps, save, load elsewhere, 10 more: the bits of 20 in one go."""
    def run(ddp, hook, optimizer, steps):
        for i in steps:
            step(ddp, optimizer, i)
        return flat(ddp)

    results = {}
    for name in ("oktopk", "powersgd", "dgc", "onebit"):
        whole_hook = getattr(hooks, name)(warmup=3)
        whole = wrap(whole_hook)
        right = run(whole, whole_hook, optimizer_of(whole), range(20))

        hook = getattr(hooks, name)(warmup=3)
        ddp = wrap(hook)
        optimizer = optimizer_of(ddp)
        run(ddp, hook, optimizer, range(10))
        path = f"{os.environ['FOLDER']}/{name}.{dist.get_rank()}"
        torch.save({"model": ddp.module.state_dict(), "hook": hook.state_dict(),
                    "optimizer": optimizer.state_dict()}, path)
        saved = torch.load(path)

        # A restart trains a step of nothing first, so that buckets are cut as they were.
        next_hook = getattr(hooks, name)(warmup=3)
        again = wrap(next_hook)
        next_optimizer = optimizer_of(again)
        next_optimizer.load_state_dict(saved["optimizer"])
        again(data(0, 0)[0]).sum().mul(0).backward()
        again.zero_grad()
        again.module.load_state_dict(saved["model"])
        again(data(0, 0)[0])  # buckets are cut in forward
        next_hook.load_state_dict(saved["hook"])
        again.zero_grad()
        got = run(again, next_hook, next_optimizer, range(10, 20))
        results[name] = float((got - right).abs().max())
    return results


def accumulation(hooks):
    """Two micro-batches in no_sync() and out of it are one exchange of their sum."""
    hook = hooks.oktopk(density=0.1)
    ddp = wrap(hook)
    optimizer = optimizer_of(ddp)
    calls = []
    for i in range(6):
        optimizer.zero_grad()
        with ddp.no_sync():
            images, labels = data(dist.get_rank(), 2 * i)
            nn.functional.cross_entropy(ddp(images), labels).backward()
        images, labels = data(dist.get_rank(), 2 * i + 1)
        nn.functional.cross_entropy(ddp(images), labels).backward()
        optimizer.step()
        calls.append(max(r["step"] for r in hook.reports()))
    return {"equal": equal_on_all_ranks(flat(ddp)), "steps": calls}


def uneven_inputs(hooks):
    """Rank 0 has fewer batches: it goes on with zeros, and ends with everybody's model."""
    hook = hooks.oktopk(density=0.1)
    ddp = wrap(hook)
    optimizer = optimizer_of(ddp)
    with ddp.join():
        for i in range(4 if dist.get_rank() == 0 else 9):
            step(ddp, optimizer, i)
    dist.barrier()
    return {"equal": equal_on_all_ranks(flat(ddp))}


def half_precision(hooks):
    """A model in bfloat16 and one in float64: gradients pass through float32."""
    results = {}
    for dtype in (torch.bfloat16, torch.float64):
        hook = hooks.oktopk(density=0.2)
        ddp = nn.parallel.DistributedDataParallel(nn.Linear(8, 4).to(DEVICE, dtype))
        hook.register(ddp)
        ddp(torch.ones(2, 8, dtype=dtype, device=DEVICE)).sum().backward()
        results[str(dtype)] = equal_on_all_ranks(ddp.module.weight.grad.float())
    return results


def on_device(hooks):
    """Buckets that stay on their device: the bits of those that go to the host, step for step.

    From one step to the next the two swap what they keep, so that state fits either way. Rank 1 has
    a NaN in step 6, and many gradients are 0 or equal, so that there are ties.
    """
    apart, skipped = 0, 0
    for policy in ("propagate", "skip"):
        hooked = [hooks.oktopk(density=0.05, warmup=2, non_finite=policy, on_device=stays)
                  for stays in (False, True)]
        ddps = [wrap(hook) for hook in hooked]
        optimizers = [optimizer_of(ddp) for ddp in ddps]
        for i in range(12):
            for ddp, optimizer in zip(ddps, optimizers):
                optimizer.zero_grad()
                images, labels = data(dist.get_rank(), i)
                images = images.round()
                if policy == "skip" and i == 6 and dist.get_rank() == 1:
                    images[0, 0] = float("nan")
                nn.functional.cross_entropy(ddp(images), labels).backward()
                optimizer.step()
            apart += int(not torch.equal(flat(ddps[0]), flat(ddps[1])))
            skipped += sum(report["skipped"] for report in hooked[1].reports())
            if i % 3 == 2:
                states = [hook.state_dict() for hook in hooked]
                apart += int(arrays_of(states[0]) != arrays_of(states[1]))
                for hook, state in zip(hooked, reversed(states)):
                    hook.load_state_dict(state)
    refused = 0
    for bad in ({"scheme": "topka"}, {"scheme": "oktopk", "measure": True}):
        try:
            hooks.CompressedAllreduce(on_device=True, **bad)
        except ValueError as error:
            refused += "on the host" in str(error)
    return {"apart": apart, "skipped": skipped, "refused": refused}


def arrays_of(state):
    return [sorted((name, array.numpy().tobytes()) for name, (_, array) in bucket["arrays"].items())
            for bucket in state["buckets"]]


def main(case):
    torch.set_num_threads(1)
    import sinew_torch
    dist.init_process_group("sinew")
    print(json.dumps(globals()[case](sinew_torch.hooks)), flush=True)
    dist.barrier()
    dist.destroy_process_group()


def test():
    result = run_ranks("every_scheme", 2)[0]
    for name, (first, last) in result["losses"].items():
        assert last < first, (name, first, last)
    assert result["dense_apart"] < 1e-6
    print("every scheme learns, ranks equal:", ", ".join(result["losses"]))

    for one in run_ranks("conservation", 2):
        assert one["layouts"] > 2 and one["worst"] < 1e-6, one
    print("state goes with parameters into new buckets:", one)

    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        for one in run_ranks("restart", 2, extra={"FOLDER": folder}):
            assert all(apart == 0 for apart in one.values()), one
    print("10 + restart + 10 steps equal 20:", ", ".join(one))

    for one in run_ranks("accumulation", 2):
        assert one["equal"] and one["steps"] == list(range(6)), one
    for one in run_ranks("uneven_inputs", 2):
        assert one["equal"], one
    for one in run_ranks("half_precision", 2):
        assert all(one.values()), one
    print("no_sync, join, bfloat16 and float64: ranks equal")

    for one in run_ranks("on_device", 3):
        assert one["apart"] == 0 and one["skipped"] > 0 and one["refused"] == 2, one
    print("buckets that stay on their device: equal bits")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        test()
