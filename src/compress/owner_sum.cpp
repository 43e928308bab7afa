#include "compress/owner_sum.hpp"

#include <algorithm>

namespace sinew {

void OwnerSum::add(std::span<ItemReader> lists) {
  std::size_t most = 0;
  for (const auto& list : lists) most += list.items();
  indices_.reserve(most + kSelectSlack);
  sums_.reserve(most + kSelectSlack);
  const ItemRoom room{indices_.data(), sums_.data(), most};
  count_ = 0;
  while (true) {
    auto next = ~std::uint64_t{0};
    for (const auto& list : lists) next = std::min(next, list.index());
    if (next == ~std::uint64_t{0}) return;
    const auto begin = next / TouchedBlock::kElements * TouchedBlock::kElements;
    const auto end = begin + TouchedBlock::kElements;
    for (auto& list : lists) {
      if (list.index() >= end) continue;
      ItemReader reader = list;  // a copy stays in registers
      for (; reader.index() < end; reader.advance())
        block_->add(reader.index() - begin, reader.value());
      list = reader;
    }
    count_ = take_touched(*block_, static_cast<std::uint32_t>(begin), room, count_);
  }
}

void OwnerSum::keep_largest(Magnitude least, std::uint64_t ties) {
  count_ = keep_items({indices_.data(), sums_.data(), count_}, count_, least);
  if (ties >= count_) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    const bool is_tied = magnitude(sums_.data()[i]) == least;
    if (is_tied && ties == 0) continue;
    if (is_tied) --ties;
    indices_.data()[kept] = indices_.data()[i];
    sums_.data()[kept++] = sums_.data()[i];
  }
  count_ = kept;
}

}  // namespace sinew
