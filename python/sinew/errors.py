"""The one exception of the package."""


class Error(RuntimeError):
    """Something failed: a code to branch on, and a story to read.

    Attributes:
        code: what kind, as in ``sinew::Errc``: "peer_lost", "timeout", "mismatch", ...
        rank: this rank, or -1 where none applies.
        peer: the rank that it is about, or -1.
        op: the collective, or "".
        sequence: its number on its communicator, from 1, or 0.
    """

    def __init__(self, message="", code="", rank=-1, peer=-1, op="", sequence=0):
        super().__init__(message)
        self.code, self.rank, self.peer, self.op, self.sequence = code, rank, peer, op, sequence


def _make(code, message, rank, peer, op, sequence):
    return Error(message, code, rank, peer, op, sequence)
