"""What goes wrong in a group, as one family of exceptions."""

from . import _backend


class SinewError(RuntimeError):
    """An operation of the backend ``sinew`` failed.

    Attributes:
        code: what kind of failure, as in ``sinew::Errc``: "peer_lost", "timeout", "mismatch", ...
        rank: this rank, or -1 where none applies.
        peer: the rank that it is about, or -1.
        op: the collective, "message", or "".
        sequence: its number in its group, from 1, or 0.
    """

    code = ""

    def __init__(self, message=""):
        super().__init__(message)
        details = _backend.recall(str(message)) or {}
        self.code = details.get("code", self.code)
        self.rank = details.get("rank", -1)
        self.peer = details.get("peer", -1)
        self.op = details.get("op", "")
        self.sequence = details.get("sequence", 0)


class PeerLostError(SinewError):
    """A rank died or left while it was needed; ``peer`` says which."""

    code = "peer_lost"


class OperationTimeoutError(SinewError):
    """A deadline passed; the text says who was late, and what it was doing."""

    code = "timeout"


class MismatchError(SinewError):
    """Two ranks called different operations; the text names both."""

    code = "mismatch"


class InvalidArgumentError(SinewError, ValueError):
    """What was asked for does not exist or does not fit."""

    code = "invalid_argument"


_backend.set_error_types({
    "peer_lost": PeerLostError,
    "timeout": OperationTimeoutError,
    "mismatch": MismatchError,
    "invalid_argument": InvalidArgumentError,
    "": SinewError,
})
