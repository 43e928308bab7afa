#include "transport/arena.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

constexpr std::size_t kPage = 4096, kSkews = 16;

}  // namespace

Arena::Arena(std::shared_ptr<Segment> segment, int rank)
    : segment_(std::move(segment)),
      base_(segment_->arena(rank)),
      skew_(static_cast<std::size_t>(rank) % kSkews * (kPage + kLine)),
      free_{{0, segment_->options().arena_bytes}} {}

std::byte* Arena::allocate(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{1} << 21;
  const auto unit = bytes >= kHugePage ? kHugePage : kPage;
  const auto wanted = std::max(unit, (bytes + skew_ + unit - 1) / unit * unit);
  const auto at = std::find_if(free_.begin(), free_.end(),
                               [&](const auto& range) { return range.second >= wanted; });
  if (at == free_.end())
    throw Error(Errc::out_of_memory,
                fmt::format("alloc_shared: no {} left of this rank's {} arena", human_bytes(bytes),
                            human_bytes(segment_->options().arena_bytes)));
  const auto [offset, available] = *at;
  segment_->reserve(base_ + offset, wanted);
  free_.erase(at);
  if (available > wanted) free_[offset + wanted] = available - wanted;
  used_[offset] = wanted;
  return base_ + offset + skew_;
}

void Arena::free(std::byte* begin) noexcept {
  begin -= skew_;
  const auto used = used_.find(static_cast<std::size_t>(begin - base_));
  if (used == used_.end()) return;
  const auto [offset, bytes] = *used;
  used_.erase(used);
  segment_->release(begin, bytes);
  auto at = free_.emplace(offset, bytes).first;
  if (const auto next = std::next(at); next != free_.end() && offset + bytes == next->first) {
    at->second += next->second;
    free_.erase(next);
  }
  if (at != free_.begin())
    if (const auto before = std::prev(at); before->first + before->second == offset) {
      before->second += at->second;
      free_.erase(at);
    }
}

}  // namespace sinew
