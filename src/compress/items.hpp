// Sparse items as they travel: ascending integer indices, coded as gaps, and their values, in one
// message:
//
//   u32 items | f32 values[items] | gaps, each 1 to 5 bytes of 7 bits, the lowest first
//
// A gap is the number of elements left out before an item, so that indices always ascend. At 2 %
// a gap takes 1.1 bytes on average.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernel/gaps.hpp"

namespace sinew {

/// Every message takes at most this.
constexpr std::size_t most_item_bytes(std::size_t items) noexcept {
  return sizeof(std::uint32_t) + items * (sizeof(float) + kMostGapBytes);
}

/// `bytes`, unless they are more than `most`: then throws Error{invalid_argument} that names
/// `from`. What a rank announces is not believed where memory depends on it.
std::size_t checked_bytes(std::uint64_t bytes, std::uint64_t most, int from);

/// Indices ascend and are at least `base`. Returns the bytes written.
std::size_t encode_items(std::span<const std::uint32_t> indices, std::span<const float> values,
                         std::uint32_t base, std::byte* to) noexcept;

/// Reads a message item by item. What does not fit (too short, too long, an index outside
/// [base, limit)) throws Error{invalid_argument} that names `from`, before anything is written
/// outside; nothing is allocated.
class ItemReader {
 public:
  ItemReader() = default;
  /// `more_follow`: bytes after the last item belong to another message, which rest() begins.
  ItemReader(std::span<const std::byte> message, std::uint64_t base, std::uint64_t limit, int from,
             bool more_follow = false);

  [[nodiscard]] std::size_t items() const noexcept { return items_; }
  [[nodiscard]] bool at_end() const noexcept { return done_ == items_; }
  /// The index of the next item; `limit` or more at the end.
  [[nodiscard]] std::uint64_t index() const noexcept { return index_; }
  [[nodiscard]] float value() const noexcept {
    float value;
    std::memcpy(&value, values_ + done_ * sizeof value, sizeof value);
    return value;
  }
  /// At the end: what comes after this message.
  [[nodiscard]] std::span<const std::byte> rest() const noexcept { return {gaps_, end_}; }
  void advance() {
    ++done_;
    read_gap();
  }
  /// All that is left; both have room for it. The same as by advance(), but faster.
  void read_rest(std::uint32_t* indices, float* values);

 private:
  void read_gap() {
    if (gaps_ < end_ && done_ < items_ && (*gaps_ & std::byte{0x80}) == std::byte{}) [[likely]] {
      index_ += std::uint64_t{1} + std::to_integer<std::uint64_t>(*gaps_++);
      if (index_ < limit_) [[likely]]
        return;
    }
    read_rarity();
  }
  void read_rarity();  // a long gap, the end, or what should not be

  const std::byte* values_ = nullptr;
  const std::byte* gaps_ = nullptr;
  const std::byte* end_ = nullptr;
  std::size_t items_ = 0, done_ = 0;
  std::uint64_t index_ = 0;
  std::uint64_t limit_ = 0;
  int from_ = -1;
  bool more_follow_ = false;
};

}  // namespace sinew
