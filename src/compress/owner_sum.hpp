// Adds up sparse lists, coordinate by coordinate and in the order of the lists, so that the sum has
// the same bits wherever and however often it is made.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "compress/items.hpp"

namespace sinew {

/// Works through blocks of coordinates that stay in cache, and steps over empty ones: the cost
/// follows the number of items, however wide the region.
class OwnerSum {
 public:
  /// Calls visit(index, sum) for every index that occurs, ascending; a sum of exactly zero counts
  /// like any other. Returns how many. The lists are read to their ends.
  template <class Visit>
  std::size_t add(std::span<ItemReader> lists, Visit visit) {
    std::size_t count = 0;
    while (true) {
      auto next = ~std::uint64_t{0};
      for (const auto& list : lists) next = std::min(next, list.index());
      if (next == ~std::uint64_t{0}) return count;
      const auto begin = next / kBlock * kBlock, end = begin + kBlock;
      for (auto& list : lists) {
        if (list.index() >= end) continue;
        ItemReader reader = list;  // a copy stays in registers
        for (; reader.index() < end; reader.advance()) {
          const auto at = reader.index() - begin;
          sums_[at] += reader.value();
          touched_[at / 64] |= std::uint64_t{1} << at % 64;
        }
        list = reader;
      }
      for (std::size_t word = 0; word < kWords; ++word)
        for (auto bits = std::exchange(touched_[word], 0); bits != 0; bits &= bits - 1) {
          const auto at = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
          visit(static_cast<std::uint32_t>(begin + at), std::exchange(sums_[at], 0.0F));
          ++count;
        }
    }
  }

 private:
  static constexpr std::size_t kBlock = 8192, kWords = kBlock / 64;
  // Zeros between blocks. Zero plus a value is that value: no item is a zero.
  std::array<float, kBlock> sums_{};
  std::array<std::uint64_t, kWords> touched_{};
};

}  // namespace sinew
