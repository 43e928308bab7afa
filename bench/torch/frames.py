#!/usr/bin/env python3
"""sinew.frame against pickle, pickle + zlib, pickle + LZ4 and torch.save: sizes and times.

bench/torch/frames.py [-o FILE.json]; three kinds of tensors: a dense gradient, the same with 98 % of
it zero, and whole numbers; each of `--elements` float32 (or int64).
"""

import argparse
import io
import json
import pickle
import statistics
import time
import zlib

import numpy

import sinew


def tensors(elements):
    random = numpy.random.default_rng(1)
    gradient = (random.standard_t(3, elements) * 1e-3).astype(numpy.float32)
    sparse = gradient.copy()
    sparse[random.random(elements) < 0.98] = 0
    return {"gradient": gradient, "gradient, 98 % zero": sparse,
            "labels": random.integers(0, 10, elements // 2)}


def contenders():
    ways = {
        "sinew.frame": (sinew.frame.dumps, sinew.frame.loads),
        "sinew.frame lz4": (lambda t: sinew.frame.dumps(t, codec="lz4"), sinew.frame.loads),
        "sinew.frame zstd": (lambda t: sinew.frame.dumps(t, codec="zstd"), sinew.frame.loads),
        "pickle": (lambda t: pickle.dumps(t, 5), pickle.loads),
        "pickle + zlib": (lambda t: zlib.compress(pickle.dumps(t, 5)),
                          lambda b: pickle.loads(zlib.decompress(b))),
    }
    try:
        import lz4.frame
        ways["pickle + lz4"] = (lambda t: lz4.frame.compress(pickle.dumps(t, 5)),
                                lambda b: pickle.loads(lz4.frame.decompress(b)))
    except ImportError:
        pass
    try:
        import torch

        def save(array):
            stream = io.BytesIO()
            torch.save(torch.from_numpy(array), stream)
            return stream.getvalue()

        ways["torch.save"] = (save, lambda b: torch.load(io.BytesIO(b)))
    except ImportError:
        pass
    return ways


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=1_201_290)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    rows = []
    for kind, array in tensors(options.elements).items():
        times = {name: ([], []) for name in contenders()}
        sizes = {}
        for _ in range(options.rounds):
            for name, (dump, load) in contenders().items():
                begin = time.perf_counter()
                data = dump(array)
                middle = time.perf_counter()
                back = load(data)
                times[name][0].append(middle - begin)
                times[name][1].append(time.perf_counter() - middle)
                sizes[name] = len(data)
                assert (numpy.asarray(back) == array).all()
        for name, (dumping, loading) in times.items():
            rows.append({"tensor": kind, "way": name, "bytes": sizes[name],
                         "ratio": array.nbytes / sizes[name],
                         "dump_ms": statistics.median(dumping) * 1e3,
                         "load_ms": statistics.median(loading) * 1e3})
            row = rows[-1]
            print(f"{kind:20} {name:17} {row['bytes']:>9} B x{row['ratio']:5.2f}  dump "
                  f"{row['dump_ms']:8.2f} ms  load {row['load_ms']:8.2f} ms")
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump({"schema": "sinew-frame-bench", "version": 1, "elements": options.elements,
                       "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
