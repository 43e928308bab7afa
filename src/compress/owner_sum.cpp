#include "compress/owner_sum.hpp"

namespace sinew {
void OwnerSum::add(std::span<ItemReader> lists, const Own& own) {
  std::size_t received = 0;
  for (const auto& list : lists) received += list.items();
  their_indices_.grow(received);
  their_values_.grow(received);
  terms_.clear();
  auto* indices = their_indices_.data();
  auto* values = their_values_.data();
  for (auto& list : lists) {
    if (terms_.size() == own.position) terms_.push_back(own.items);
    list.read_rest(indices, values);
    terms_.push_back({{indices, list.items()}, {values, list.items()}});
    indices += list.items();
    values += list.items();
  }
  if (terms_.size() == own.position) terms_.push_back(own.items);
  const auto most = received + own.items.indices.size();
  indices_.grow(most + kSelectSlack);
  sums_.grow(most + kSelectSlack);
  count_ = add_sparse(terms_, {indices_.data(), sums_.data(), most});
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
