"""Gradient compression for DistributedDataParallel, a function for each scheme of the registry.

>>> ddp = DistributedDataParallel(model)
>>> hook = sinew_torch.hooks.oktopk(density=0.02, warmup=128).register(ddp)

``hook.state_dict()`` belongs into the checkpoint: it has what was not sent yet. ``hook.reports()``
tells what the last step sent.
"""

import torch

from . import _backend

_DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
    "i8": torch.int8, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64,
}


class CompressedAllreduce:
    """A communication hook: the allreduce of a scheme, with what it keeps for each parameter.

    State belongs to parameters, not to buckets: DDP cuts its buckets anew after the first step, and
    a checkpoint may be loaded into other buckets. Ranks that have left a ``join()`` go on sending
    what they kept, with gradients of zero. Nothing is sent inside ``no_sync()``.

    Buckets on a GPU stay there where the scheme can do with it (``oktopk``): the largest elements
    are found on the GPU, and only they come to the host. ``on_device=False`` brings all of them to
    the host; ``True`` treats buckets on the host like those on a GPU. The bits are the same.
    """

    def __init__(self, scheme, *, density=0.01, warmup=0, group=None, non_finite="propagate",
                 measure=False, on_device=None, **parameters):
        known = {name: spec for name, _, _, spec in _backend.schemes()}
        if scheme not in known:
            raise ValueError(f"no scheme '{scheme}'; there are {', '.join(sorted(known))}")
        unknown = set(parameters) - set(known[scheme])
        if unknown:
            raise TypeError(f"{scheme} has no parameter {', '.join(sorted(unknown))}; it has "
                            f"{', '.join(sorted(known[scheme])) or 'none'}")
        if on_device and (measure or not _backend.selects_on_device(scheme)):
            raise ValueError(f"{scheme} needs gradients on the host"
                             f"{' to measure their quality' if measure else ''}: leave on_device out")
        self.scheme = scheme
        self.density = density
        self.warmup = warmup
        self.group = group
        self.non_finite = non_finite
        self.measure = measure
        self.on_device = on_device
        self.parameters = {name: float(value) for name, value in parameters.items()}
        self._buckets = None
        self._names = {}
        self._layouts = {}
        self.__name__ = self.__qualname__ = f"sinew_{scheme}"

    def register(self, ddp):
        """Makes it the hook of ``ddp``, whose parameters are known by their names then."""
        self._learn_names(ddp)
        ddp.register_comm_hook(None, self)
        return self

    def __call__(self, state, bucket):
        if isinstance(state, torch.nn.Module) and not self._names:
            self._learn_names(state)
        names, shapes = self._layout(bucket)
        work = self._lane().allreduce(bucket.buffer(), names, shapes)
        return work.get_future().then(_first)

    def reports(self):
        """What the last step of each bucket was: a dict of bytes, items and density each."""
        return [] if self._buckets is None else self._buckets.reports()

    def state_dict(self):
        """Everything that the next step depends on, as tensors; different on each rank."""
        buckets = [] if self._buckets is None else self._buckets.save()
        for bucket in buckets:
            bucket["arrays"] = {name: (dtype, _tensor(dtype, data))
                                for name, (dtype, data) in bucket["arrays"].items()}
        return {"scheme": self.scheme, "buckets": buckets}

    def load_state_dict(self, state):
        """What ``state_dict()`` gave on this rank, before the first step."""
        if state["scheme"] != self.scheme:
            raise ValueError(f"this state is of {state['scheme']}, and the hook is {self.scheme}")
        self._lane().load([
            dict(bucket, arrays={name: (dtype, bytes(tensor.contiguous().numpy().tobytes()))
                                 for name, (dtype, tensor) in bucket["arrays"].items()})
            for bucket in state["buckets"]
        ])

    def _lane(self):
        if self._buckets is None:
            from . import _group
            self._buckets = _backend.CompressedBuckets(
                _group(self.group), self.scheme, self.density, self.warmup, self.non_finite,
                self.measure, self.parameters, self.on_device)
        return self._buckets

    def _learn_names(self, module):
        module = getattr(module, "module", module)
        self._names = {id(p): name for name, p in module.named_parameters()}

    def _layout(self, bucket):
        parameters = bucket.parameters()
        key = tuple(id(p) for p in parameters)
        if key not in self._layouts:
            self._layouts[key] = ([self._name(p) for p in parameters],
                                  [list(p.shape) for p in parameters])
        return self._layouts[key]

    def _name(self, parameter):
        # Without names the order in which parameters come first serves: it is that of the model.
        return self._names.setdefault(id(parameter), f"parameter {len(self._names)}")


def _first(future):
    return future.value()[0]


def _tensor(dtype, data):
    kind = _DTYPES.get(dtype, torch.int64)  # u64, which torch has not, as i64: the same bits
    return torch.frombuffer(bytearray(data), dtype=kind) if data else torch.empty(0, dtype=kind)


def _scheme(name, summary, sparse):
    if sparse:
        def make(density=0.01, warmup=0, **options):
            return CompressedAllreduce(name, density=density, warmup=warmup, **options)
    else:
        def make(warmup=0, **options):
            return CompressedAllreduce(name, warmup=warmup, **options)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{summary[0].upper()}{summary[1:]}."
    return make


#: Names of all schemes.
schemes = [name for name, _, _, _ in _backend.schemes()]
for _name, _summary, _sparse, _ in _backend.schemes():
    globals()[_name] = _scheme(_name, _summary, _sparse)
__all__ = ["CompressedAllreduce", "schemes", *schemes]
