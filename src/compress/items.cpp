#include "compress/items.hpp"

#include <fmt/format.h>

#include <sinew/error.hpp>
#include "kernel/gaps.hpp"

namespace sinew {
namespace {

constexpr std::uint32_t kMore = 0x80;

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
  at = put_gaps(indices, base, at);
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
    GapPlace place{gaps_, index_};
    const auto found = take_gaps(place, end_, limit_, {indices, items_ - done_ - 1});
    gaps_ = place.at;
    index_ = place.index;
    indices += found;
    done_ += found;
  }
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
