// Ring: every rank talks to its two neighbours only. Each element crosses each link once per phase,
// so no other algorithm moves fewer bytes; the price is a number of rounds that grows with P.
#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {

Schedule allreduce_ring(const Place& at) {
  const int size = at.size, rank = at.rank;
  const int right = wrap(rank + 1, size), left = wrap(rank - 1, size);
  Builder b("ring", rank, size, u32(size), u32(size));
  b.copy(in(0, u32(size)), out(0, u32(size)));
  for (int k = 0; k < size - 1; ++k) {  // reduce-scatter: ends with chunk rank + 1 complete
    b.next_round();
    b.send(right, out(wrap_chunk(rank - k, size)));
    b.recv_reduce(left, out(wrap_chunk(rank - k - 1, size)));
  }
  for (int k = 0; k < size - 1; ++k) {  // allgather of the complete chunks
    b.next_round();
    b.send(right, out(wrap_chunk(rank + 1 - k, size)));
    b.recv(left, out(wrap_chunk(rank - k, size)));
  }
  return b.finish(b.round() + 1);
}

Schedule allgather_ring(const Place& at) {
  const int size = at.size, rank = at.rank;
  Builder b("ring", rank, size, 1, u32(size));
  b.copy(in(0), out(u32(rank)));
  for (int k = 0; k < size - 1; ++k) {
    b.next_round();
    b.send(wrap(rank + 1, size), out(wrap_chunk(rank - k, size)));
    b.recv(wrap(rank - 1, size), out(wrap_chunk(rank - k - 1, size)));
  }
  return b.finish(b.round() + 1);
}

Schedule reduce_scatter_ring(const Place& at) {
  const int size = at.size, rank = at.rank;
  Builder b("ring", rank, size, u32(size), 1);
  // Partial sums travel in scratch; the last one to arrive is this rank's own part.
  const auto partial = [&](int k) {  // what step k receives: chunk rank - k - 2
    return k == size - 2 ? out(0) : scratch(u32(k));
  };
  for (int k = 0; k < size - 2; ++k) b.add_scratch(wrap_chunk(rank - k - 2, size), 1);
  if (size == 1) b.copy(in(0), out(0));
  for (int k = 0; k < size - 1; ++k) b.copy(in(wrap_chunk(rank - k - 2, size)), partial(k));
  for (int k = 0; k < size - 1; ++k) {
    b.next_round();
    b.send(wrap(rank + 1, size), k == 0 ? in(wrap_chunk(rank - 1, size)) : partial(k - 1));
    b.recv_reduce(wrap(rank - 1, size), partial(k));
  }
  return b.finish(b.round() + 1);
}

}  // namespace sinew
