// Adds up sparse lists, coordinate by coordinate and in the order of the lists, so that the sum has
// the same bits wherever and however often it is made.
#pragma once

#include <span>
#include <vector>

#include "compress/items.hpp"
#include "kernel/large_buffer.hpp"
#include "kernel/sparse.hpp"

namespace sinew {

/// The cost follows the number of items, however wide the region.
class OwnerSum {
 public:
  /// A list that never travelled, and how many of the others come before it.
  struct Own {
    SparseItems items;
    std::size_t position = 0;
  };
  /// Reads the lists to their ends. A sum of exactly zero counts like any other.
  void add(std::span<ItemReader> lists) { add(lists, Own{}); }
  void add(std::span<ItemReader> lists, const Own& own);

  /// Of the last add(): ascending indices and their sums; they may be changed.
  [[nodiscard]] std::span<std::uint32_t> indices() const { return {indices_.data(), count_}; }
  [[nodiscard]] std::span<float> sums() const { return {sums_.data(), count_}; }
  [[nodiscard]] SparseItems items() const { return {indices(), sums()}; }

  /// Those of at least `least` stay, and of those equal to it only the first `ties`.
  void keep_largest(Magnitude least, std::uint64_t ties);

 private:
  std::vector<SparseItems> terms_;
  LargeBuffer<std::uint32_t> their_indices_;
  LargeBuffer<float> their_values_;
  LargeBuffer<std::uint32_t> indices_{kSelectSlack};
  LargeBuffer<float> sums_{kSelectSlack};
  std::size_t count_ = 0;
};

}  // namespace sinew
