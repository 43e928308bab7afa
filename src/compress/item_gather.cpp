#include "compress/item_gather.hpp"

#include <algorithm>
#include <numeric>

namespace sinew {

bool ItemGather::run(Exchange& x, std::span<const std::uint32_t> indices,
                     std::span<const float> values, bool finite) {
  std::size_t bytes = 0;
  {
    const auto timed = x.time(Part::encode);
    mine_.reserve(most_item_bytes(indices.size()));
    bytes = encode_items(indices, values, 0, mine_.data());
  }
  // One word for each rank: how long its message is, and whether it has something not finite.
  const std::uint64_t word = bytes << 1 | (finite ? 0 : 1);
  words_.resize(sizes_.size());
  x.allgather("counts", std::span(&word, 1), std::span(words_));
  if (std::any_of(words_.begin(), words_.end(), [](auto w) { return (w & 1) != 0; })) return false;
  for (std::size_t rank = 0; rank < sizes_.size(); ++rank)
    sizes_[rank] =
        checked_bytes(words_[rank] >> 1, most_item_bytes(elements_), static_cast<int>(rank));
  add_up(x, {reinterpret_cast<const std::uint8_t*>(mine_.data()), bytes});
  x.report.local_items = indices.size();
  return true;
}

void ItemGather::add_up(Exchange& x, std::span<const std::uint8_t> mine) {
  const auto total = std::accumulate(sizes_.begin(), sizes_.end(), std::size_t{0});
  all_.reserve(total);
  x.allgatherv("items", mine, std::span(reinterpret_cast<std::uint8_t*>(all_.data()), total),
               sizes_);
  const auto timed = x.time(Part::reduce);
  lists_.clear();
  const std::byte* at = all_.data();
  for (std::size_t rank = 0; rank < sizes_.size(); at += sizes_[rank++])
    lists_.emplace_back(std::span(at, sizes_[rank]), 0, elements_, static_cast<int>(rank));
  owner_.add(lists_);
  write_sparse(x.gradient, owner_.items(), x.divisor());
  x.report.items = owner_.items().indices.size();
}

}  // namespace sinew
