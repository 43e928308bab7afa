// A set of the ranks of one group.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sinew {

class RankSet {
 public:
  RankSet() = default;
  /// None of `size` ranks.
  explicit RankSet(int size) : words_((static_cast<std::size_t>(size) + 63) / 64) {}
  static RankSet all(int size) {
    RankSet set(size);
    for (int rank = 0; rank < size; ++rank) set.insert(rank);
    return set;
  }

  [[nodiscard]] bool contains(int rank) const noexcept {
    const auto word = static_cast<std::size_t>(rank) / 64;
    return word < words_.size() && (words_[word] >> (rank % 64) & 1) != 0;
  }
  void insert(int rank) noexcept {
    words_[static_cast<std::size_t>(rank) / 64] |= std::uint64_t{1} << (rank % 64);
  }
  void erase(int rank) noexcept {
    words_[static_cast<std::size_t>(rank) / 64] &= ~(std::uint64_t{1} << (rank % 64));
  }
  [[nodiscard]] int count() const noexcept {
    int sum = 0;
    for (const auto word : words_) sum += std::popcount(word);
    return sum;
  }
  [[nodiscard]] bool empty() const noexcept { return count() == 0; }
  [[nodiscard]] bool is_within(const RankSet& other) const noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i)
      if ((words_[i] & ~other.words_[i]) != 0) return false;
    return true;
  }
  [[nodiscard]] RankSet without(const RankSet& other) const {
    RankSet rest = *this;
    for (std::size_t i = 0; i < words_.size(); ++i) rest.words_[i] &= ~other.words_[i];
    return rest;
  }
  /// Ascending.
  [[nodiscard]] std::vector<int> list() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < static_cast<int>(words_.size() * 64); ++rank)
      if (contains(rank)) ranks.push_back(rank);
    return ranks;
  }
  [[nodiscard]] const std::vector<std::uint64_t>& words() const noexcept { return words_; }
  [[nodiscard]] std::vector<std::uint64_t>& words() noexcept { return words_; }
  friend bool operator==(const RankSet&, const RankSet&) = default;

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace sinew
