"""Calls of mpi4py whose bytes are known, and what a profiler is expected to see, in a file a rank:
mpi_calls.py FOLDER, two ranks."""

import sys
from collections import defaultdict

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
peer = (rank + 1) % size
is_root = rank == 0
data, other = bytearray(4000), bytearray(4000)
expected = defaultdict(lambda: [0, 0, 0])


def expect(routine, sent=0, received=0, calls=1):
    for place, amount in enumerate((calls, sent, received)):
        expected[f"MPI_{routine}"][place] += amount


def ints(buffer, count):
    return [buffer, count, MPI.INT]


def give_up(*error):
    sys.__excepthook__(*error)
    world.Abort(1)  # or the others wait


sys.excepthook = give_up
for _ in range(10):
    world.Allreduce(MPI.IN_PLACE, [data, 100, MPI.DOUBLE])
expect("Allreduce", 8000, 8000, 10)
# mpi4py passes null types where an argument means nothing.
for _ in range(2):
    world.Gather(ints(data, 50), ints(other, 50) if is_root else None, root=0)
expect("Gather", 400, 400 * size if is_root else 0, 2)
world.Scatter(ints(data, 5) if is_root else None, ints(other, 5), root=0)
expect("Scatter", 20 * size if is_root else 0, 20)
world.Reduce(MPI.IN_PLACE if is_root else ints(data, 6), ints(data, 6) if is_root else None, root=0)
expect("Reduce", 24, 24 if is_root else 0)
world.Bcast(ints(data, 7), root=0)
expect("Bcast", 28 if is_root else 0, 0 if is_root else 28)
world.Barrier()
expect("Barrier")
world.Allgather(ints(data, 3), ints(other, 3))
expect("Allgather", 12, 12 * size)
counts = [i + 1 for i in range(size)]
world.Allgatherv(ints(data, rank + 1), [other, counts, MPI.INT])
expect("Allgatherv", 4 * (rank + 1), 4 * sum(counts))
world.Alltoall(ints(data, 2), ints(other, 2))
expect("Alltoall", 8 * size, 8 * size)
world.Alltoallv([data, [2] * size, MPI.INT], [other, [2] * size, MPI.INT])
expect("Alltoallv", 8 * size, 8 * size)
world.Reduce_scatter(ints(data, sum(counts)), ints(other, rank + 1), counts)
expect("Reduce_scatter", 4 * sum(counts), 4 * (rank + 1))
request = world.Iallreduce(ints(data, 4), ints(other, 4))
request.Wait()
expect("Iallreduce", 16, 16)
expect("Wait")

request = world.Irecv(other)
world.Send([data, 50, MPI.BYTE], dest=peer)
request.Wait()
expect("Irecv", 0, 50)
expect("Send", 50)
expect("Wait")
world.Send([data, 60, MPI.BYTE], dest=MPI.PROC_NULL)
expect("Send")
world.Sendrecv([data, 70, MPI.BYTE], dest=peer, recvbuf=other, source=MPI.ANY_SOURCE)
expect("Sendrecv", 70, 70)
MPI.Request.Waitall([world.Irecv(other, source=peer, tag=1), world.Isend([data, 80, MPI.BYTE], dest=peer, tag=1)])
expect("Irecv", 0, 80)
expect("Isend", 80)
expect("Waitall")
strided = MPI.INT.Create_vector(3, 1, 2).Commit()
world.Isend([data, 2, strided], dest=peer, tag=2).Wait()
expect("Isend", 24)
expect("Wait")
world.Recv(other, source=peer, tag=2)
expect("Recv", 0, 24)
strided.Free()
expect("Type_free")
persistent = world.Send_init([data, 90, MPI.BYTE], dest=peer, tag=3)
expect("Send_init")
for _ in range(2):
    persistent.Start()
    world.Recv(other, source=peer, tag=3)
    persistent.Wait()
persistent.Free()
expect("Start", 180, 0, 2)
expect("Recv", 0, 180, 2)
expect("Wait", calls=2)
expect("Request_free")
never = world.Irecv(other, source=peer, tag=99)
never.Cancel()
never.Wait()
expect("Irecv")
expect("Cancel")
expect("Wait")
half = world.Split(rank % 2)
half.Allreduce(ints(data, 1), ints(other, 1))
half.Free()
expect("Comm_split")
expect("Allreduce", 4, 4)
expect("Comm_free")
window = MPI.Win.Create(other, 1, comm=world)
window.Fence()
window.Put([data, 10, MPI.BYTE], peer)
window.Fence()
window.Free()
expect("Win_create")
expect("Put", 10)
expect("Win_fence", calls=2)
expect("Win_free")

with open(f"{sys.argv[1]}/{rank}", "w", encoding="utf-8") as file:
    for routine, (calls, sent, received) in expected.items():
        file.write(f"expect {routine} {calls} {sent} {received}\n")
