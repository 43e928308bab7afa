"""A sum over all ranks, in NumPy: sinew launch -n 4 -- python3 numpy_allreduce.py"""

import numpy

import sinew

communicator = sinew.connect()
data = numpy.full(1_000_000, communicator.rank + 1, numpy.float32)
communicator.allreduce(data)
expected = communicator.size * (communicator.size + 1) / 2
assert (data == expected).all()
if communicator.rank == 0:
    print(f"{communicator.size} ranks over {communicator.transport}: each has {data[0]:.0f}")
    best = sinew.predict("allreduce", communicator.size, data.nbytes, "alpha=5us,bw=10GB/s")[0]
    print(f"over a network of 5 us and 10 GB/s {best['algorithm']} would take "
          f"{best['time_us']:.0f} us")
