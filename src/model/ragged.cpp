#include "model/ragged.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "schedule/builder.hpp"

namespace sinew {
namespace {

constexpr double kChunks = 1 << 28;  // of all parts together: fine enough that rounding is nothing

// Parts in chunks, and what is simulated of them.
struct Cut {
  std::vector<std::uint32_t> chunks;
  std::uint32_t all = 0;
  double bytes = 0;
};

Cut cut(std::span<const double> parts) {
  Cut cut;
  cut.bytes = std::accumulate(parts.begin(), parts.end(), 0.0);
  for (const double part : parts) {
    const double share = cut.bytes > 0 ? part / cut.bytes : 0;
    cut.chunks.push_back(static_cast<std::uint32_t>(std::lround(share * kChunks)));
    cut.all += cut.chunks.back();
  }
  return cut;
}

template <class Generator>
Workload workload(int size, double bytes, Generator generate) {
  Workload workload{.size = size, .bytes = bytes};
  workload.schedule = std::move(generate);
  workload.symmetry = find_symmetry(size, workload.schedule);
  return workload;
}

}  // namespace

std::vector<double> skewed_parts(int ranks, double bytes, double imbalance) {
  const double mean = bytes / ranks;
  const double first = std::min(bytes, imbalance * mean);
  std::vector<double> parts(static_cast<std::size_t>(ranks),
                            ranks > 1 ? (bytes - first) / (ranks - 1) : 0);
  parts.front() = first;
  return parts;
}

Workload ragged_alltoall(std::span<const double> parts) {
  const int size = static_cast<int>(parts.size());
  const auto shape = std::make_shared<const Cut>(cut(parts));
  return workload(size, shape->bytes, [=](int rank) {
    Builder b("ragged_pairwise", rank, size, shape->all, shape->all);
    for (int offset = 1; offset < size; ++offset, b.next_round()) {
      const int to = (rank + offset) % size, from = (rank - offset + size) % size;
      b.send(to, in(0, shape->chunks[static_cast<std::size_t>(to)]));
      b.recv(from, out(0, shape->chunks[static_cast<std::size_t>(rank)]));
    }
    return b.finish(b.round() + 1);
  });
}

Workload ragged_allgather(std::span<const double> parts) {
  const int size = static_cast<int>(parts.size());
  const auto shape = std::make_shared<const Cut>(cut(parts));
  return workload(size, shape->bytes, [=](int rank) {
    const auto blocks = [&](int first, int count) {
      std::uint32_t chunks = 0;
      for (int i = 0; i < count; ++i)
        chunks += shape->chunks[static_cast<std::size_t>((first + i) % size)];
      return chunks;
    };
    Builder b("ragged_bruck", rank, size, shape->all, shape->all);
    for (int have = 1; have < size; have *= 2, b.next_round()) {
      const int count = std::min(have, size - have);
      b.send((rank - have + size) % size, out(0, blocks(rank, count)));
      b.recv((rank + have) % size, out(0, blocks((rank + have) % size, count)));
    }
    return b.finish(b.round() + 1);
  });
}

}  // namespace sinew
