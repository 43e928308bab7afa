#!/usr/bin/env python3
"""Times accumulate + threshold + compaction on a GPU beside torch: select.py LIBRARY [--json FILE]

LIBRARY is libsinew_cuda_bench.so, as `cmake -S src/cuda -B build/cuda && cmake --build build/cuda`
makes it. Contenders take turns; a figure is the median over rounds. The result is compared with
that of the plain loop on the CPU first, bit for bit.
"""

import argparse
import ctypes
import json
import statistics
import sys

import torch

ELEMENTS = 27_569_568  # of the lstman4 model
DENSITY = 0.02


def heavy_tailed(seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    size = torch.empty(ELEMENTS, device="cuda").exponential_(1, generator=generator)
    sign = torch.randint(0, 2, (ELEMENTS,), device="cuda", generator=generator) * 2 - 1
    return size * sign * 0.01


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


class Sinew:
    def __init__(self, library, capacity):
        self.library = ctypes.CDLL(library)
        self.library.sinew_selector.restype = ctypes.c_void_p
        self.library.sinew_accumulate_select_on_cpu.restype = ctypes.c_size_t
        self.selector = ctypes.c_void_p(self.library.sinew_selector(ctypes.c_size_t(ELEMENTS)))
        self.capacity = capacity
        self.indices = torch.empty(capacity, dtype=torch.int32, device="cuda")
        self.values = torch.empty(capacity, device="cuda")
        self.count = torch.zeros(1, dtype=torch.int32, device="cuda")

    def select(self, gradient, kept, out, floor):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        status = self.library.sinew_accumulate_select(
            self.selector, pointer(gradient), pointer(kept), pointer(out),
            ctypes.c_size_t(ELEMENTS), ctypes.c_uint32(floor), pointer(self.indices),
            pointer(self.values), ctypes.c_uint32(self.capacity), pointer(self.count), stream)
        if status != 0:
            sys.exit("selecting failed")

    def check(self, gradient, kept, out, floor):
        self.select(gradient, kept, out, floor)
        g, k = gradient.cpu(), kept.cpu()
        sums = torch.empty_like(g)
        indices = torch.empty(self.capacity, dtype=torch.int32)
        values = torch.empty(self.capacity)
        count = self.library.sinew_accumulate_select_on_cpu(
            pointer(g), pointer(k), pointer(sums), ctypes.c_size_t(ELEMENTS),
            ctypes.c_uint32(floor), pointer(indices), pointer(values),
            ctypes.c_size_t(self.capacity))
        same = (int(self.count) == count and torch.equal(out.cpu(), sums)
                and torch.equal(self.indices.cpu()[:count], indices[:count])
                and torch.equal(self.values.cpu()[:count], values[:count]))
        if not same:
            sys.exit("the GPU's result differs from the CPU's")
        return count


def microseconds(body, repeats):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        body()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / repeats


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    gradient, kept = heavy_tailed(1), heavy_tailed(2)
    out = torch.empty_like(gradient)
    k = int(DENSITY * ELEMENTS)
    threshold = torch.topk((gradient + kept).abs(), k).values[-1]
    floor = int(threshold.view(torch.int32))
    ours = Sinew(arguments.library, 2 * k)
    items = ours.check(gradient, kept, out, floor)

    contenders = {
        "accumulate_select": (lambda: ours.select(gradient, kept, out, floor), 20),
        "accumulate alone (torch.add)": (lambda: torch.add(gradient, kept, out=out), 20),
        "torch.topk of magnitudes": (lambda: torch.topk(out.abs(), k), 3),
        "torch threshold + nonzero": (
            lambda: torch.nonzero(torch.add(gradient, kept, out=out).abs() >= threshold), 3),
    }
    samples = {name: [] for name in contenders}
    for body, repeats in contenders.values():
        microseconds(body, repeats)
    for _ in range(arguments.rounds):
        for name, (body, repeats) in contenders.items():
            samples[name].append(microseconds(body, repeats))
    properties = torch.cuda.get_device_properties(0)
    medians = {name: statistics.median(values) for name, values in samples.items()}
    print(f"{properties.name}, torch {torch.__version__}: {ELEMENTS} floats, {items} of them "
          f"selected ({items / ELEMENTS:.2%}), equal to the CPU's result bit for bit")
    for name, median in medians.items():
        print(f"{median:9.1f} us  {name} (fastest {min(samples[name]):.1f})")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"schema": "sinew-cuda-select/1", "command": "bench/cuda/select.py",
                       "gpu": properties.name, "torch": torch.__version__, "elements": ELEMENTS,
                       "items": items, "p50_us": medians,
                       "min_us": {name: min(values) for name, values in samples.items()}},
                      file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
