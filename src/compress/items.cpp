#include "compress/items.hpp"

#include <fmt/format.h>

#include <bit>

#include <sinew/error.hpp>

namespace sinew {
namespace {

constexpr std::uint32_t kMore = 0x80;

std::byte* put_gap(std::byte* to, std::uint32_t gap) noexcept {
  while (gap >= kMore) {
    *to++ = static_cast<std::byte>(gap | kMore);
    gap >>= 7;
  }
  *to++ = static_cast<std::byte>(gap);
  return to;
}

[[noreturn]] void refuse(int from, std::string_view why) {
  throw Error(Errc::invalid_argument, fmt::format("sparse items from rank {}: {}", from, why),
              {.peer = from});
}

}  // namespace

std::size_t checked_bytes(std::uint64_t bytes, std::uint64_t most, int from) {
  if (bytes > most)
    refuse(from,
           fmt::format("{} bytes announced, where {} are the most there can be", bytes, most));
  return bytes;
}

std::size_t encode_items(std::span<const std::uint32_t> indices, std::span<const float> values,
                         std::uint32_t base, std::byte* to) noexcept {
  const auto items = static_cast<std::uint32_t>(indices.size());
  std::memcpy(to, &items, sizeof items);
  std::byte* at = to + sizeof items;
  if (items > 0) std::memcpy(at, values.data(), values.size_bytes());
  at += values.size_bytes();
  std::uint32_t next = base;
  for (const auto index : indices) {
    const auto gap = index - next;
    next = index + 1;
    if (gap < kMore * kMore) [[likely]] {
      // Two bytes always, the second to be overwritten if it is not needed: which it is cannot be
      // predicted.
      const std::uint32_t is_long = gap >= kMore ? 1 : 0;
      const auto bytes =
          static_cast<std::uint16_t>((gap & (kMore - 1)) | is_long << 7 | gap >> 7 << 8);
      std::memcpy(at, &bytes, sizeof bytes);
      at += 1 + is_long;
    } else {
      at = put_gap(at, gap);
    }
  }
  return static_cast<std::size_t>(at - to);
}

ItemReader::ItemReader(std::span<const std::byte> message, std::uint64_t base, std::uint64_t limit,
                       int from, bool more_follow)
    : limit_(limit), from_(from), more_follow_(more_follow) {
  std::uint32_t items = 0;
  if (message.size() < sizeof items) refuse(from, "the message is shorter than its head");
  std::memcpy(&items, message.data(), sizeof items);
  const auto rest = message.size() - sizeof items;
  if (rest / (sizeof(float) + 1) < items)
    refuse(from, fmt::format("{} items do not fit {} bytes", items, message.size()));
  items_ = items;
  values_ = message.data() + sizeof items;
  gaps_ = values_ + items_ * sizeof(float);
  end_ = message.data() + message.size();
  index_ = base - 1;  // the first gap counts from `base`
  read_gap();
}

void ItemReader::read_rest(std::uint32_t* indices, float* values) {
  if (at_end()) return;
  std::memcpy(values, values_ + done_ * sizeof(float), (items_ - done_) * sizeof(float));
  for (; !at_end(); advance()) {
    *indices++ = static_cast<std::uint32_t>(index_);
    indices += read_many(indices);
  }
}

// Up to seven short gaps and one of two bytes at once, as a word holds them: where a long one comes
// cannot be predicted, so nothing branches on it. It ends before whatever is rarer, which is left
// to those who go one by one.
std::size_t ItemReader::read_many(std::uint32_t* indices) noexcept {
  static_assert(std::endian::native == std::endian::little, "the first gap is in the lowest byte");
  constexpr std::uint64_t kMoreOfSeven = 0x80'8080'8080'8080U, kLast = std::uint64_t{1} << 63;
  constexpr std::uint64_t kPairs = 0x00FF'00FF'00FF'00FFU, kSum = 0x0001'0001'0001'0001U;
  constexpr std::size_t kAtOnce = 8;
  const std::byte* gaps = gaps_;
  auto index = index_;
  std::size_t found = 0;
  const auto left = items_ - done_;
  while (left - found > kAtOnce && static_cast<std::size_t>(end_ - gaps) > kAtOnce) {
    std::uint64_t word = 0;
    std::memcpy(&word, gaps, sizeof word);
    const auto bits_of_short = static_cast<unsigned>(
        std::countr_zero((word & kMoreOfSeven) | kLast) & ~7);  // 8 for each gap
    const auto shorts = bits_of_short / 8;
    // All eight as if they were short: those that are not are overwritten.
    auto at = index;
    for (std::size_t k = 0; k < kAtOnce; ++k)
      indices[found + k] = static_cast<std::uint32_t>(at += 1 + (word >> 8 * k & 0x7F));
    const auto before = word & ((std::uint64_t{1} << bits_of_short) - 1);
    index += shorts + (((before & kPairs) + (before >> 8 & kPairs)) * kSum >> 48);
    const auto low = std::to_integer<std::uint64_t>(gaps[shorts]);
    const auto high = std::to_integer<std::uint64_t>(gaps[shorts + 1]);
    const auto is_long = low >> 7;
    const auto next = index + 1 + (low & 0x7F) + (high << 7 & (std::uint64_t{0} - is_long));
    if (next >= limit_ || (is_long & high >> 7) != 0) break;
    index = next;
    indices[found + shorts] = static_cast<std::uint32_t>(index);
    found += shorts + 1;
    gaps += shorts + 1 + is_long;
    index_ = index;
    gaps_ = gaps;
  }
  done_ += found;
  return found;
}

void ItemReader::read_rarity() {
  if (done_ == items_) {
    if (gaps_ != end_ && !more_follow_) refuse(from_, "there are bytes after the last item");
    index_ = ~std::uint64_t{0};
    return;
  }
  if (index_ != ~std::uint64_t{0} && index_ >= limit_)
    refuse(from_, fmt::format("index {} lies outside a region that ends at {}", index_, limit_));
  std::uint64_t gap = 0;
  for (int shift = 0;; shift += 7) {
    if (gaps_ == end_ || shift > 28) refuse(from_, "a gap is cut off");
    const auto byte = std::to_integer<std::uint64_t>(*gaps_++);
    gap |= (byte & 0x7F) << shift;
    if (byte < kMore) break;
  }
  index_ += gap + 1;
  if (index_ >= limit_)
    refuse(from_, fmt::format("index {} lies outside a region that ends at {}", index_, limit_));
}

}  // namespace sinew
