"""Marks in the trace that a job writes when SINEW_TRACE names a folder (docs/torch.md)."""

import contextlib
import functools
import time

import torch

from . import _backend


@contextlib.contextmanager
def phase(name):
    """What communicates inside belongs to this phase: ``with trace.phase("warm-up"):``"""
    _backend.enter_phase(name)
    try:
        yield
    finally:
        _backend.enter_phase("")


def watch(optimizer):
    """Each ``step()`` of optimizers of this class ends an iteration in the trace.

    The class is changed and not the object: learning-rate schedules want a bound method there.
    """
    kind = type(optimizer)
    plain = kind.step
    if getattr(plain, "_marks_steps", False):
        return optimizer

    @functools.wraps(plain)
    def step(self, *arguments, **keywords):
        begin = time.monotonic_ns()
        try:
            return plain(self, *arguments, **keywords)
        finally:
            _backend.mark_step(begin, time.monotonic_ns())

    step._marks_steps = True
    kind.step = step
    return optimizer


def watch_all():
    """The same for every optimizer that is made from now on; done at import under SINEW_TRACE."""
    plain = torch.optim.Optimizer.__init__

    @functools.wraps(plain)
    def init(self, *arguments, **keywords):
        plain(self, *arguments, **keywords)
        watch(self)

    torch.optim.Optimizer.__init__ = init
