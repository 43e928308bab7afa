"""The trace of a torch job: its collectives, its optimizer's steps, its phases."""

import json
import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from launch import run_ranks

STEPS = 12


def main(case):
    torch.set_num_threads(1)
    import sinew_torch
    dist.init_process_group("sinew")
    model = nn.parallel.DistributedDataParallel(nn.Linear(50, 50))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    for step in range(STEPS):
        with sinew_torch.trace.phase("first" if step < 4 else "rest"):
            optimizer.zero_grad()
            model(torch.ones(4, 50)).sum().backward()
            optimizer.step()
            schedule.step()
    dist.barrier()
    dist.destroy_process_group()
    print(json.dumps("done"))


def test():
    with tempfile.TemporaryDirectory() as folder:
        assert run_ranks("train", 2, extra={"SINEW_TRACE": folder}) == ["done", "done"]
        assert len(os.listdir(folder)) == 2, os.listdir(folder)
        text = subprocess.run([os.environ["SINEW"], "report", "--format", "profile-json", folder],
                              check=True, capture_output=True, text=True).stdout
        profile = json.loads(text)
        rows = [row for row in find_rows(profile) if "region" in row]  # and not sums of them
        steps = [row for row in rows if "optimizer_step" in json.dumps(row)]
        assert sum(row["calls"] for row in steps) == 2 * STEPS, steps
        reduces = [row for row in rows if "allreduce" in json.dumps(row).lower()]
        assert sum(row["calls"] for row in reduces) >= 2 * STEPS, reduces
        regions = {row.get("region") for row in reduces}
        assert {"first", "rest"} <= regions, regions
    print(f"two traces: {STEPS} steps each, in two phases")


def find_rows(value):
    """Whatever has a number of calls."""
    if isinstance(value, dict):
        if "calls" in value and not isinstance(value["calls"], (list, dict)):
            yield value
        for one in value.values():
            yield from find_rows(one)
    elif isinstance(value, list):
        for one in value:
            yield from find_rows(one)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        test()
