"""Calls of mpi4py whose bytes are known, printed for tests to compare with what a profiler saw."""

import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
data = bytearray(800)
for _ in range(10):
    world.Allreduce(MPI.IN_PLACE, [data, 100, MPI.DOUBLE])
# mpi4py passes null types where an argument means nothing.
everything = bytearray(800 * world.size) if world.rank == 0 else None
for _ in range(2):
    world.Gather(data, everything, root=0)
other = bytearray(4000)
peer = (world.rank + 1) % world.size
request = world.Irecv(other)
world.Send([data, 50, MPI.BYTE], dest=peer)
request.Wait()
gathered = 1600 * world.size if world.rank == 0 else 0
# In one write, so that lines of several ranks do not mix.
sys.stdout.write(f"""expect MPI_Allreduce 10 8000 8000
expect MPI_Gather 2 1600 {gathered}
expect MPI_Send 1 50 0
expect MPI_Irecv 1 0 50
""")
sys.stdout.flush()
