"""Messages with tags, blocking, non-blocking, and both ways at once.

sinew launch -n 4 -- python3 messages.py
"""

import numpy

import sinew

communicator = sinew.connect()
rank, size = communicator.rank, communicator.size
left, right = (rank - 1) % size, (rank + 1) % size


def tags():
    """Tags are streams of their own: the second may be received first."""
    if rank == 0 and size > 1:
        communicator.send(numpy.array([100], numpy.int32), dest=1, tag=31)
        communicator.send(numpy.array([200], numpy.int32), dest=1, tag=32)
    elif rank == 1:
        first, second = numpy.empty(1, numpy.int32), numpy.empty(1, numpy.int32)
        communicator.recv(second, source=0, tag=32)
        communicator.recv(first, source=0, tag=31)
        assert (first[0], second[0]) == (100, 200)
        print(f"tags: rank 1 received {second[0]}, then {first[0]}")


def blocking():
    if rank == 0 and size > 1:
        communicator.send(numpy.arange(8, dtype=numpy.int32), dest=1, tag=10)
    elif rank == 1:
        data = numpy.empty(8, numpy.int32)
        communicator.recv(data, source=0, tag=10)
        assert (data == numpy.arange(8)).all()
        print(f"blocking: rank 1 received {data}")


def nonblocking():
    """Everybody to the right at once; waiting comes last."""
    mine = numpy.full(1024, rank, numpy.float32)
    theirs = numpy.empty_like(mine)
    sinew.wait_all([communicator.isend(mine, right, tag=20),
                    communicator.irecv(theirs, left, tag=20)])
    assert (theirs == left).all()


def sendrecv():
    mine, theirs = numpy.array([rank], numpy.int32), numpy.empty(1, numpy.int32)
    communicator.sendrecv(mine, right, theirs, left, tag=30)
    assert theirs[0] == left


for example in (tags, blocking, nonblocking, sendrecv):
    example()
    communicator.barrier()
if rank == 0:
    print(f"non-blocking and both ways: {size} ranks in a ring")
