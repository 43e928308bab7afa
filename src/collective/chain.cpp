// Pipelined chain: data flows along a line of ranks in segments, so that all links work at once.
// Reductions run from rank 0 upward and therefore in rank order.
#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {
namespace {

// Position 0 has the data; segment j passes from position p to p + 1 in round start + p + j.
void pass_along(Builder& b, std::uint32_t start, std::uint32_t segments, int position, int last,
                int before, int after, Chunks first_source, Chunks data) {
  for (std::uint32_t j = 0; j < segments; ++j) {
    const auto arrives = start + u32(position) + j - 1;
    if (position > 0) {
      b.at(arrives);
      b.recv(before, {data.buf, data.first + j, 1});
    }
    const auto& source = position == 0 ? first_source : data;
    if (position < last) {
      b.at(arrives + 1);
      b.send(after, {source.buf, source.first + j, 1});
    }
  }
}

// Rank r adds its own and hands on: segment j leaves rank r in round start + r + j.
void add_along(Builder& b, std::uint32_t start, std::uint32_t segments, int rank, int last,
               Chunks sum) {
  for (std::uint32_t j = 0; j < segments; ++j) {
    if (rank > 0) {
      b.at(start + u32(rank) + j - 1);
      b.recv_reduce(rank - 1, {sum.buf, sum.first + j, 1});
    }
    if (rank < last) {
      b.at(start + u32(rank) + j);
      b.send(rank + 1, {sum.buf, sum.first + j, 1});
    }
  }
}

}  // namespace

Schedule broadcast_chain(const Place& at) {
  const int position = wrap(at.rank - at.root, at.size);
  Builder b("chain", at.rank, at.size, at.segments, at.segments);
  if (position == 0) b.copy(in(0, at.segments), out(0, at.segments));
  pass_along(b, 0, at.segments, position, at.size - 1, wrap(at.rank - 1, at.size),
             wrap(at.rank + 1, at.size), in(0, at.segments), out(0, at.segments));
  return b.finish(u32(at.size) + at.segments);
}

Schedule reduce_chain(const Place& at) {
  const int last = at.size - 1;
  Builder b("chain", at.rank, at.size, at.segments, at.segments);
  const auto room = scratch(b.add_scratch(0, at.segments), at.segments);
  // The last of the chain has the result. A root elsewhere gets it by one more hop.
  const auto sum = at.rank == last && at.root == last ? out(0, at.segments) : room;
  b.copy(in(0, at.segments), sum);
  add_along(b, 1, at.segments, at.rank, last, sum);
  if (at.root != last) {
    if (at.rank == last) pass_along(b, u32(at.size), at.segments, 0, 1, -1, at.root, sum, {});
    if (at.rank == at.root)
      pass_along(b, u32(at.size), at.segments, 1, 1, last, -1, {}, out(0, at.segments));
  }
  return b.finish(u32(at.size) + at.segments + 1);
}

Schedule allreduce_chain(const Place& at) {
  const int last = at.size - 1;
  Builder b("chain", at.rank, at.size, at.segments, at.segments);
  const auto sum = out(0, at.segments);
  b.copy(in(0, at.segments), sum);
  add_along(b, 1, at.segments, at.rank, last, sum);
  pass_along(b, u32(at.size), at.segments, last - at.rank, last, at.rank + 1, at.rank - 1, sum,
             sum);
  return b.finish(u32(2 * at.size) + at.segments);
}

}  // namespace sinew
