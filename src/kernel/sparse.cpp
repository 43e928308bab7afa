#include "kernel/sparse.hpp"

#include "kernel/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/sparse.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h: these are compiled for every target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void write_vectors(std::span<float> vector, SparseItems items, float divisor, Common asked, bool) {
  write_sparse_scalar(vector, items, divisor, asked);
}
std::size_t add_vectors(std::span<SparseItems> lists, ItemRoom room) {
  return add_sparse_scalar(lists, room);
}

#else

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;

// `streaming`: `to` is aligned.
HWY_INLINE void emit(const float* staged, float* to, std::size_t elements, bool streaming) {
  const F d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    const auto values = hn::Add(hn::Load(d, staged + i), hn::Zero(d));  // -0 becomes 0
    if (streaming)
      hn::Stream(values, d, to + i);
    else
      hn::StoreU(values, d, to + i);
  }
  for (; i < elements; ++i) to[i] = staged[i] + 0.0F;
}

// A part of the vector before it is written. Where there is no item is 0; where an item is zero is
// -0, so that its value alone says whether it is there.
struct Stage {
  static constexpr std::size_t kElements = 2048;
  alignas(64) float values[kElements] = {};
  std::size_t begin = 0, end = 0;
  std::size_t first = 0, last = 0;  // of the items
};

// Items are put into a small block of zeros, which is then written as a whole: every line of the
// vector is written once, and none is read. Then they become zeros again. There are two blocks, and
// the next one is filled before this one is written: stores leave the core in order, so that what
// was put into a block just now would be seen by loads of whole vectors only once everything that
// was written before has left, and core and memory would take turns.
void write_vectors(std::span<float> vector, SparseItems items, float divisor, Common asked,
                   bool streaming) {
  float* const to = vector.data();
  const auto* const indices = items.indices.data();
  const auto* const values = items.values.data();
  const auto* const others = asked.indices.data();
  auto* const bits = asked.bits.data();
  const std::size_t count = items.indices.size(), other_count = asked.indices.size();
  std::size_t item = 0, other = 0;
  const auto fill = [&](Stage& stage, std::size_t begin, std::size_t end) {
    stage.begin = begin;
    stage.end = end;
    stage.first = item;
    for (; item < count && indices[item] < end; ++item) {
      const float value = values[item] / divisor;
      stage.values[indices[item] - begin] = value == 0 ? -0.0F : value;
    }
    stage.last = item;
    if (asked.bits.empty()) return;
    // A word that the last block shares with this one has been begun there.
    std::fill(bits + (begin + 63) / 64, bits + (end + 63) / 64, 0);
    for (; other < other_count && others[other] < end; ++other) {
      const auto value = std::bit_cast<std::uint32_t>(stage.values[others[other] - begin]);
      bits[others[other] / 64] |= std::uint64_t{value != 0} << others[other] % 64;
    }
  };
  const auto empty = [&](Stage& stage) {
    emit(stage.values, to + stage.begin, stage.end - stage.begin, streaming);
    for (std::size_t i = stage.first; i < stage.last; ++i)
      stage.values[indices[i] - stage.begin] = 0;
  };

  Stage stages[2];
  const auto misaligned = reinterpret_cast<std::uintptr_t>(to) / sizeof(float) % hn::Lanes(F{});
  const auto size = vector.size();
  std::size_t end =
      std::min(size, misaligned == 0 ? Stage::kElements : hn::Lanes(F{}) - misaligned);
  fill(stages[0], 0, end);
  int current = 0;
  for (; end < size; current ^= 1) {
    const auto next = std::min(size, end + Stage::kElements);
    fill(stages[current ^ 1], end, next);
    empty(stages[current]);
    end = next;
  }
  empty(stages[current]);
  if (streaming) hwy::FlushStream();
}

// Which of a few elements: a byte for each, because a bit would have to wait for the one set
// before.
struct Marks {
  static constexpr std::size_t kElements = 8192, kWords = kElements / 64;
  alignas(64) std::uint8_t bytes[kElements] = {};

  /// Makes them bits, 64 in a word, and none is marked any more.
  HWY_INLINE void move_to(std::uint64_t* words) {
    const hn::CappedTag<std::uint8_t, 64> d;
    const std::size_t lanes = hn::Lanes(d);
    for (std::size_t i = 0; i < kElements; i += lanes) {
      const auto marked = hn::Ne(hn::Load(d, bytes + i), hn::Zero(d));
      hn::StoreMaskBits(d, marked, reinterpret_cast<std::uint8_t*>(words) + i / 8);
      hn::Store(hn::Zero(d), d, bytes + i);
    }
  }
};

// Block by block of coordinates that stay in cache: which of them occur, how many come before each,
// and then every item's sum is where it belongs, list after list. Nothing branches on how lists
// interleave, and empty blocks are stepped over.
std::size_t add_vectors(std::span<SparseItems> lists, ItemRoom room) {
  constexpr auto kBlock = Marks::kElements, kWords = Marks::kWords;
  Marks marks;
  std::uint64_t words[kWords + 1];  // as many bytes as Highway may write
  std::uint32_t before[kWords];     // how many occur in the words before
  std::size_t count = 0;
  while (true) {
    auto next = ~std::uint64_t{0};
    for (const auto& list : lists)
      if (!list.indices.empty()) next = std::min<std::uint64_t>(next, list.indices.front());
    if (next == ~std::uint64_t{0}) return count;
    const auto begin = next / kBlock * kBlock, end = begin + kBlock;
    for (const auto& list : lists)
      for (std::size_t i = 0; i < list.indices.size() && list.indices[i] < end; ++i)
        marks.bytes[list.indices[i] - begin] = 1;
    marks.move_to(words);
    std::uint32_t found = 0;
    for (std::size_t w = 0; w < kWords; ++w) {
      before[w] = found;
      found += static_cast<std::uint32_t>(std::popcount(words[w]));
    }
    auto* const indices = room.indices + count;
    auto* const sums = room.values + count;
    std::fill_n(sums, found, 0.0F);
    for (auto& list : lists) {
      const auto* const from = list.indices.data();
      const auto* const values = list.values.data();
      const std::size_t all = list.indices.size();
      std::size_t i = 0;
      for (; i < all && from[i] < end; ++i) {
        const auto at = from[i] - begin;
        const auto smaller = words[at / 64] & ((std::uint64_t{1} << at % 64) - 1);
        const auto place = before[at / 64] + static_cast<std::size_t>(std::popcount(smaller));
        indices[place] = from[i];
        sums[place] += values[i];
      }
      list = {list.indices.subspan(i), list.values.subspan(i)};
    }
    count += found;
  }
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinew {
namespace {

// Past this the vector does not stay in cache, and ordinary stores would first read what they
// replace.
constexpr std::size_t kStreamingElements = std::size_t{1} << 20;

}  // namespace

HWY_EXPORT(write_vectors);
HWY_EXPORT(add_vectors);

void write_sparse(std::span<float> vector, SparseItems items, float divisor,
                  Common asked) noexcept {
  const bool aligned = reinterpret_cast<std::uintptr_t>(vector.data()) % sizeof(float) == 0;
  HWY_DYNAMIC_DISPATCH(write_vectors)
  (vector, items, divisor, asked, aligned && vector.size() >= kStreamingElements);
}

std::size_t add_sparse(std::span<SparseItems> lists, ItemRoom room) noexcept {
  return HWY_DYNAMIC_DISPATCH(add_vectors)(lists, room);
}

void write_sparse_scalar(std::span<float> vector, SparseItems items, float divisor,
                         Common asked) noexcept {
  std::fill(vector.begin(), vector.end(), 0.0F);
  for (std::size_t i = 0; i < items.indices.size(); ++i)
    vector[items.indices[i]] = items.values[i] / divisor + 0.0F;
  if (asked.bits.empty()) return;
  std::fill(asked.bits.begin(), asked.bits.end(), 0);
  for (const auto index : asked.indices)
    if (std::binary_search(items.indices.begin(), items.indices.end(), index))
      asked.bits[index / 64] |= std::uint64_t{1} << index % 64;
}

std::size_t add_sparse_scalar(std::span<SparseItems> lists, ItemRoom room) noexcept {
  for (std::size_t count = 0;; ++count) {
    auto next = ~std::uint64_t{0};
    for (const auto& list : lists)
      if (!list.indices.empty()) next = std::min<std::uint64_t>(next, list.indices.front());
    if (next == ~std::uint64_t{0}) return count;
    room.indices[count] = static_cast<std::uint32_t>(next);
    room.values[count] = 0;
    for (auto& list : lists) {
      if (list.indices.empty() || list.indices.front() != next) continue;
      room.values[count] += list.values.front();
      list = {list.indices.subspan(1), list.values.subspan(1)};
    }
  }
}

}  // namespace sinew
#endif
