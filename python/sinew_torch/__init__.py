"""The torch.distributed backend ``sinew``.

>>> import sinew_torch
>>> torch.distributed.init_process_group("sinew")

is all that changes in a program. Ranks may come from ``sinew launch``, ``mpirun``, ``srun``,
``torchrun`` or plain environment variables (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT).

``sinew_torch.hooks`` has gradient compression for DistributedDataParallel, ``sinew_torch.trace``
marks iterations and phases, ``sinew_torch.errors`` is what goes wrong.
"""

import atexit
import os

from . import _place

_place.fill_environment()

import torch
import torch.distributed as dist

from . import _backend, errors
from .errors import SinewError

if _backend.torch_version().split(".")[:2] != torch.__version__.split(".")[:2]:
    raise ImportError(
        f"sinew_torch was built for torch {_backend.torch_version()}, and this is torch "
        f"{torch.__version__}: build it again with this Python (SINEW_PYTHON)")


def _register():
    if hasattr(dist.Backend, "SINEW"):
        return
    # Groups that DDP still holds at the end have threads, which the ending interpreter would abort.
    atexit.register(_backend.stop_all)
    if torch.__version__ >= "2":
        dist.Backend.register_backend("sinew", _backend.create, devices=["cpu", "cuda"])
    else:
        dist.Backend.register_backend("sinew", _backend.create)


def _group(group=None):
    """The group as our own functions take it."""
    group = dist.group.WORLD if group is None else group
    if group is None:
        raise RuntimeError("no process group yet: call torch.distributed.init_process_group first")
    if hasattr(group, "_get_backend") and not isinstance(group, _base_type()):
        for device in ("cpu", "cuda"):
            try:
                inner = group._get_backend(torch.device(device))
            except RuntimeError:
                continue
            if _backend.is_ours(inner):
                return inner
    return group


def _base_type():
    return getattr(torch._C._distributed_c10d, "Backend", type(None))


def abort(group=None):
    """Ends the group: what is under way fails, on all ranks, and so does all that comes."""
    _backend.abort(_group(group))


def sums_on_device(group=None):
    """How many all_reduce sums of CUDA tensors were added up on a GPU that all ranks share, without
    a way through the host."""
    return _backend.sums_on_device(_group(group))


_register()

from . import hooks, trace

if os.environ.get("SINEW_TRACE"):
    trace.watch_all()

__all__ = ["SinewError", "abort", "errors", "hooks", "sums_on_device", "trace"]
