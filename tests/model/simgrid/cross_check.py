#!/usr/bin/env python3
"""Predictions beside SimGrid's: the same allreduce on the same platform, within 0.5 %.

Usage: cross_check.py SINEW WORK_DIR. Leaves with 77 (skipped) where SimGrid is not installed.
SimGrid runs the model CM02 without cross-traffic and TCP windows: latency plus bytes over
bandwidth, shared max-min, as here. SINEW_FULL=1 adds 512 ranks.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

FLAGS = ["--cfg=network/model:CM02", "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:0",
         "--cfg=smpi/simulate-computation:no", "--cfg=smpi/display-timing:no"]
ALGORITHMS = {"rdb": "recursive_doubling", "lr": "ring", "rab_rdb": "halving_doubling"}
LATENCY_US = 10  # of a message: two links of a host
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="h" suffix="" radical="0-{last}" speed="1Gf" bw="{bandwidth}GBps"
           lat="{latency}us" {backbone}/>
</platform>
"""
BACKBONE_NET = """format = "sinew-net"
version = 1
[link.own]
alpha_us = {alpha}
gbytes_per_s = {bandwidth}
capacity_gbytes_per_s = {shared}
[[level]]
name = "cluster"
link = "own"
shared = "level"
"""


class Check:
    def __init__(self, sinew, folder):
        self.sinew, self.folder = sinew, pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program = self.folder / "allreduce"
        source = pathlib.Path(__file__).with_name("allreduce.c")
        subprocess.run(["smpicc", "-O1", source, "-o", self.program], check=True)
        self.worst, self.failed = 0.0, 0

    def simgrid(self, algorithm, ranks, count, bandwidth, backbone):
        platform = self.folder / "platform.xml"
        platform.write_text(PLATFORM.format(last=ranks - 1, bandwidth=bandwidth,
                                            latency=LATENCY_US / 2, backbone=backbone))
        hosts = self.folder / "hosts"
        hosts.write_text("".join(f"h{i}\n" for i in range(ranks)))
        ran = subprocess.run(
            ["smpirun", "-np", str(ranks), "-platform", platform, "-hostfile", hosts, *FLAGS,
             f"--cfg=smpi/allreduce:{algorithm}", self.program, str(count)],
            capture_output=True, text=True, check=False, timeout=280)
        for line in ran.stdout.splitlines():
            if line.startswith("seconds "):
                return float(line.split()[1])
        sys.exit(f"SimGrid failed: {ran.stdout}\n{ran.stderr}")

    def predicted(self, algorithm, ranks, count, network):
        ran = subprocess.run(
            [self.sinew, "predict", "allreduce", "--algo", ALGORITHMS[algorithm], "-p", str(ranks),
             "--bytes", str(4 * count), "--net", network, "--json"],
            capture_output=True, text=True, check=True)
        return json.loads(ran.stdout)["results"][0]["time_us"] / 1e6

    def compare(self, what, theirs, ours):
        error = ours / theirs - 1
        self.worst = max(self.worst, abs(error))
        good = abs(error) <= 0.005
        self.failed += not good
        print(f"{what:44} SimGrid {theirs * 1e6:12.2f} us, here {ours * 1e6:12.2f} us "
              f"({error * 100:+.3f} %){'' if good else '  TOO FAR'}")


def main():
    if not (shutil.which("smpicc") and shutil.which("smpirun")):
        print("SimGrid is not installed (libsimgrid-dev): skipped")
        sys.exit(77)
    check = Check(sys.argv[1], sys.argv[2])
    full = os.environ.get("SINEW_FULL") == "1"
    for ranks in (8, 64) + ((512,) if full else ()):
        for algorithm in ALGORITHMS:
            for count in (64 * ranks,) + ((262144,) if ranks == 8 else ()):
                net = f"alpha={LATENCY_US}us,bw=1GB/s"
                check.compare(f"{algorithm}, {ranks} ranks, {4 * count} bytes",
                              check.simgrid(algorithm, ranks, count, 1, ""),
                              check.predicted(algorithm, ranks, count, net))
    # A backbone of 2 GB/s that all messages share, behind links of 1 GB/s.
    file = check.folder / "backbone.toml"
    file.write_text(BACKBONE_NET.format(alpha=LATENCY_US, bandwidth=1, shared=2))
    for ranks, algorithm in ((8, "lr"), (8, "rdb"), (16, "rab_rdb"), (64, "lr")):
        count = 16384 * 8
        check.compare(f"backbone, {algorithm}, {ranks} ranks, {4 * count} bytes",
                      check.simgrid(algorithm, ranks, count, 1,
                                    'bb_bw="2GBps" bb_lat="0us" bb_sharing_policy="SHARED"'),
                      check.predicted(algorithm, ranks, count, str(file)))
    print(f"largest difference: {check.worst * 100:.3f} %")
    sys.exit(1 if check.failed else 0)


main()
