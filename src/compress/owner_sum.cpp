#include "compress/owner_sum.hpp"

#include <algorithm>

namespace sinew {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

}  // namespace

void OwnerSum::add(std::span<ItemReader> lists, const Own& own) {
  std::size_t most = own.items.indices.size();
  for (const auto& list : lists) most += list.items();
  indices_.grow(most + kSelectSlack);
  sums_.grow(most + kSelectSlack);
  const ItemRoom room{indices_.data(), sums_.data(), most};
  const auto before = lists.first(own.position), after = lists.subspan(own.position);
  auto mine = own.items;
  count_ = 0;
  while (true) {
    auto next = mine.indices.empty() ? kNone : std::uint64_t{mine.indices.front()};
    for (const auto& list : lists) next = std::min(next, list.index());
    if (next == kNone) return;
    const auto begin = next / TouchedBlock::kElements * TouchedBlock::kElements;
    add_block(before, begin);
    std::size_t item = 0;
    for (; item < mine.indices.size() && mine.indices[item] - begin < TouchedBlock::kElements;
         ++item)
      block_->add(mine.indices[item] - begin, mine.values[item]);
    mine = {mine.indices.subspan(item), mine.values.subspan(item)};
    add_block(after, begin);
    count_ = take_touched(*block_, static_cast<std::uint32_t>(begin), room, count_);
  }
}

void OwnerSum::add_block(std::span<ItemReader> lists, std::uint64_t begin) {
  const auto end = begin + TouchedBlock::kElements;
  for (auto& list : lists) {
    if (list.index() >= end) continue;
    ItemReader reader = list;  // a copy stays in registers
    for (; reader.index() < end; reader.advance())
      block_->add(reader.index() - begin, reader.value());
    list = reader;
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
