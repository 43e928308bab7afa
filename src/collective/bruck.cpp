// Bruck: ceil(log2 P) rounds for any P, by keeping the parts rotated so that the own one is first.
#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {

Schedule allgather_bruck(const Place& at) {
  const int size = at.size;
  Builder b("bruck", at.rank, size, 1, u32(size));
  for (int i = 0; i < size; ++i) b.add_scratch(wrap_chunk(at.rank + i, size), 1);
  b.copy(in(0), scratch(0));
  for (int have = 1; have < size; have *= 2) {
    b.next_round();
    const auto count = u32(std::min(have, size - have));
    b.send(wrap(at.rank - have, size), scratch(0, count));
    b.recv(wrap(at.rank + have, size), scratch(u32(have), count));
  }
  b.next_round();
  b.copy(scratch(0, u32(size - at.rank)), out(u32(at.rank), u32(size - at.rank)));
  b.copy(scratch(u32(size - at.rank), u32(at.rank)), out(0, u32(at.rank)));
  return b.finish(b.round() + 1);
}

Schedule alltoall_bruck(const Place& at) {
  const int size = at.size;
  Builder b("bruck", at.rank, size, u32(size), u32(size));
  // Slot i holds what must still travel i ranks upward. All parts are equally large, so slots need
  // no chunk of their own to be like.
  const auto slots = b.add_scratch(0, u32(size));
  const auto outgoing = b.add_scratch(0, u32(size / 2));
  const auto incoming = b.add_scratch(0, u32(size / 2));
  b.copy(in(u32(at.rank), u32(size - at.rank)), scratch(slots, u32(size - at.rank)));
  b.copy(in(0, u32(at.rank)), scratch(slots + u32(size - at.rank), u32(at.rank)));
  for (int distance = 1; distance < size; distance *= 2) {
    std::vector<std::uint32_t> moving;
    for (int i = 0; i < size; ++i)
      if ((i & distance) != 0) moving.push_back(u32(i));
    const auto count = static_cast<std::uint32_t>(moving.size());
    b.next_round();
    for (std::uint32_t i = 0; i < count; ++i)
      b.copy(scratch(slots + moving[i]), scratch(outgoing + i));
    b.next_round();
    b.send(wrap(at.rank + distance, size), scratch(outgoing, count));
    b.recv(wrap(at.rank - distance, size), scratch(incoming, count));
    b.next_round();
    for (std::uint32_t i = 0; i < count; ++i)
      b.copy(scratch(incoming + i), scratch(slots + moving[i]));
  }
  b.next_round();
  for (int i = 0; i < size; ++i)
    b.copy(scratch(slots + u32(i)), out(wrap_chunk(at.rank - i, size)));
  return b.finish(b.round() + 1);
}

}  // namespace sinew
