// Pairwise: in round k every rank sends to the one k above it and receives from the one k below,
// so that each pair meets once and no rank is flooded.
#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {

Schedule alltoall_pairwise(const Place& at) {
  Builder b("pairwise", at.rank, at.size, u32(at.size), u32(at.size));
  b.copy(in(u32(at.rank)), out(u32(at.rank)));
  for (int k = 1; k < at.size; ++k) {
    b.next_round();
    const int to = wrap(at.rank + k, at.size), from = wrap(at.rank - k, at.size);
    b.send(to, in(u32(to)));
    b.recv(from, out(u32(from)));
  }
  return b.finish(b.round() + 1);
}

Schedule reduce_scatter_pairwise(const Place& at) {
  Builder b("pairwise", at.rank, at.size, u32(at.size), 1);
  b.copy(in(u32(at.rank)), out(0));
  for (int k = 1; k < at.size; ++k) {
    b.next_round();
    const int to = wrap(at.rank + k, at.size);
    b.send(to, in(u32(to)));
    b.recv_reduce(wrap(at.rank - k, at.size), out(0));
  }
  return b.finish(b.round() + 1);
}

}  // namespace sinew
