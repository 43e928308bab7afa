// Defaults of a contender: private memory and integer-valued f32 data, whose sums are exact.
#include "measure/contender.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace sinew::bench {
namespace {

// Values depend on rank and position, so that lost, doubled and misplaced parts all show. The
// weights keep every sum below 2^24 for up to 4000 ranks: f32 adds them without rounding.
constexpr float kUnwritten = -1.0F;
constexpr std::uint64_t scramble(std::uint64_t index) noexcept {
  return (index * 0x9E3779B97F4A7C15ULL) >> 56;
}
constexpr std::uint64_t scale(int rank) noexcept {
  return static_cast<std::uint64_t>(rank % 16 + 1);
}
constexpr std::uint64_t shift(int rank) noexcept { return static_cast<std::uint64_t>(rank % 13); }

float given(int rank, std::uint64_t index) noexcept {
  return static_cast<float>(scale(rank) * scramble(index) + shift(rank));
}

std::span<float> floats(std::span<std::byte> bytes) noexcept {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

/// Counts over one stretch of the output against `expected(i)`.
template <class Expected>
std::uint64_t differing(std::span<const float> got, Expected expected) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < got.size(); ++i) wrong += got[i] != expected(i) ? 1 : 0;
  return wrong;
}

/// The sum over all ranks, of a stretch that begins at `first` in everybody's input.
std::uint64_t differing_from_sum(std::span<const float> got, std::uint64_t first, int ranks) {
  std::uint64_t scales = 0;
  std::uint64_t shifts = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    scales += scale(rank);
    shifts += shift(rank);
  }
  return differing(got, [=](std::uint64_t i) {
    return static_cast<float>(scales * scramble(first + i) + shifts);
  });
}

/// Each rank's part in rank order; `size(r)` elements that begin at `first(r)` in r's input.
template <class Size, class First>
std::uint64_t differing_from_parts(std::span<const float> got, int ranks, Size size, First first) {
  std::uint64_t wrong = 0;
  std::uint64_t at = 0;
  for (int rank = 0; rank < ranks && at < got.size(); ++rank) {
    wrong += differing(got.subspan(at, size(rank)),
                       [&](std::uint64_t i) { return given(rank, first(rank) + i); });
    at += size(rank);
  }
  return wrong;
}

}  // namespace

std::span<std::byte> Contender::alloc(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), size};
}

void Contender::free(std::span<std::byte> memory) noexcept {
  ::munmap(memory.data(), memory.size());
}

void Contender::rewrite(const Buffers& buffers) {
  const auto input = floats(buffers.input);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i & 0xFF);
}

void Contender::fill(const Case& what, Seat seat, const Buffers& buffers) {
  std::ranges::fill(floats(buffers.output), kUnwritten);
  const auto input = floats(buffers.input);
  if (what.collective == Collective::broadcast && seat.rank != what.root) return;
  for (std::uint64_t i = 0; i < input.size(); ++i) input[i] = given(seat.rank, i);
}

std::uint64_t Contender::count_wrong(const Case& what, Seat seat, const Buffers& buffers) {
  const std::span<const float> got = floats(buffers.output);
  const int rank = seat.rank;
  const int ranks = seat.ranks;
  const std::uint64_t part = elements_per_rank(what, ranks);
  const auto equal_parts = [part](int) { return part; };
  const auto from_start = [](int) { return std::uint64_t{0}; };
  switch (what.collective) {
    case Collective::allreduce:
    case Collective::reduce:
      return differing_from_sum(got, 0, ranks);
    case Collective::reduce_scatter:
      return differing_from_sum(got, part * static_cast<std::uint64_t>(rank), ranks);
    case Collective::broadcast:
      return differing(got, [&](std::uint64_t i) { return given(what.root, i); });
    case Collective::scatter:
      return differing(got, [&](std::uint64_t i) {
        return given(what.root, part * static_cast<std::uint64_t>(rank) + i);
      });
    case Collective::allgather:
    case Collective::gather:
      return differing_from_parts(got, ranks, equal_parts, from_start);
    case Collective::allgatherv:
      return differing_from_parts(
          got, ranks, [&](int from) { return what.counts[static_cast<std::size_t>(from)]; },
          from_start);
    case Collective::alltoall:
    case Collective::alltoallv:
      return differing_from_parts(
          got, ranks, [&](int from) { return pair_elements(what, from, rank, ranks); },
          [&](int from) {
            std::uint64_t before = 0;
            for (int to = 0; to < rank; ++to) before += pair_elements(what, from, to, ranks);
            return before;
          });
    case Collective::barrier:
      break;
  }
  return 0;
}

}  // namespace sinew::bench
