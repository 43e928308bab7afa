"""Collectives as schedules: executed, verified, predicted and drawn.

>>> import numpy, sinew
>>> communicator = sinew.connect()          # under `sinew launch`, mpirun, srun; alone: one rank
>>> data = numpy.ones(1000, numpy.float32)
>>> communicator.allreduce(data)            # in place, on anything with the buffer protocol

``sinew.run_local(4, body)`` runs ranks as threads, which is enough for a notebook.
``sinew.verify``, ``draw``, ``predict`` and ``report`` return plain values.
``sinew.frame`` writes named tensors as bytes and reads them back without running anyone's code.
"""

from . import errors, frame
from ._sinew import (
    Communicator,
    Request,
    algorithms,
    connect,
    draw,
    predict,
    report,
    run_local,
    schemes,
    verify,
)
from .errors import Error


def wait_all(requests):
    """Waits for every message of a list."""
    for request in requests:
        request.wait()


__all__ = [
    "Communicator", "Error", "Request", "algorithms", "connect", "draw", "errors", "frame",
    "predict", "report", "run_local", "schemes", "verify", "wait_all",
]
