"""Named tensors as bytes: docs/format-tensor.md.

Unlike pickle, reading runs nobody's code, copies nothing where tensors are not compressed, and
notices every flipped bit.
"""

import json

import numpy

from . import _sinew

_NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "uint16", "i8": "int8",
          "u8": "uint8", "i32": "int32", "i64": "int64", "u64": "uint64"}


def dumps(tensors, metadata=None, *, codec="none", level=1, shuffle=True, dtypes=None):
    """The bytes of one array, or of a dict of arrays by name.

    tensors: NumPy arrays or torch tensors on the host. metadata: what JSON can hold, in a dict.
    codec: "none", "lz4", "zstd" or "zlib". dtypes: by name, for what NumPy has no type for
    ("bf16" in uint16).
    """
    if not isinstance(tensors, dict):
        tensors = {"": tensors}
    kinds = dict(dtypes or {})
    items = []
    for name, tensor in tensors.items():
        array = _array(tensor, name, kinds)
        items.append((name, array, kinds.get(name, "")))
    text = "" if metadata is None else json.dumps(metadata)
    return _sinew.write_frame(items, text, codec, level, shuffle)


def loads(data, *, verify=True):
    """What dumps() was given: an array, or a dict of arrays.

    Arrays are views into `data` where they were not compressed, and read-only then.
    """
    tensors = load(data, verify=verify)[0]
    return tensors[""] if list(tensors) == [""] else tensors


def load(data, *, verify=True):
    """(dict of arrays, metadata or None)."""
    metadata, stored = _sinew.read_frame(data, verify)
    tensors = {}
    for name, dtype, shape, offset, unpacked in stored:
        count = int(numpy.prod(shape, dtype=numpy.int64))
        source, first = (data, offset) if unpacked is None else (unpacked, 0)
        array = numpy.frombuffer(source, _NUMPY[dtype], count, first) if count else \
            numpy.empty(0, _NUMPY[dtype])
        tensors[name] = array.reshape(shape)
    return tensors, json.loads(metadata) if metadata else None


def _array(tensor, name, kinds):
    if type(tensor).__module__ == "torch":
        import torch
        tensor = tensor.detach()
        if tensor.dtype is torch.bfloat16:
            kinds[name] = "bf16"
            tensor = tensor.view(torch.int16)
        tensor = tensor.numpy()
        if kinds.get(name) == "bf16":
            tensor = tensor.view("uint16")
    # ascontiguousarray would make one number a row of one
    return numpy.asarray(tensor, order="C")
