// Messages under way by route, each route first in, first out. A hash table of routes that have
// any, over one pool of messages: what is not under way takes no room.
#pragma once

#include <cstdint>
#include <vector>

#include "model/simulate.hpp"

namespace sinew {

struct Route {
  std::int32_t from, to;
  std::uint32_t channel;
  friend bool operator==(const Route&, const Route&) = default;
};

/// A message that does not wait for its receiver: when it has left, and how long it occupies a
/// port.
struct Letter {
  Moment end{};
  Cost cost{};
  Picoseconds begin = 0;
};

class MailboxTable {
 public:
  void put(const Route& route, const Letter& content) {
    if (2 * (used_ + 1) > boxes_.size()) grow();
    const auto letter = add_letter(content);
    auto& box = boxes_[find(route)];
    if (box.first == kNone) {
      box = {route, letter, letter};
      ++used_;
    } else {
      letters_[box.last].next = letter;
      box.last = letter;
    }
  }
  [[nodiscard]] bool has(const Route& route) const noexcept {
    return used_ > 0 && boxes_[find(route)].first != kNone;
  }
  /// The oldest; there must be one.
  Letter take(const Route& route) noexcept {
    const auto at = find(route);
    const auto first = boxes_[at].first;
    const auto content = letters_[first].content;
    boxes_[at].first = letters_[first].next;
    letters_[first].next = spare_;
    spare_ = first;
    if (boxes_[at].first == kNone) close(at);
    return content;
  }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  struct Queued {
    Letter content{};
    std::uint32_t next = kNone;
  };
  struct Box {
    Route route{};
    std::uint32_t first = kNone, last = kNone;
  };

  [[nodiscard]] std::size_t home(const Route& route) const noexcept {
    auto hash = (std::uint64_t{static_cast<std::uint32_t>(route.from)} << 32 |
                 static_cast<std::uint32_t>(route.to)) +
                (std::uint64_t{route.channel} << 60);
    hash *= 0x9E3779B97F4A7C15U;
    return (hash ^ hash >> 32) & (boxes_.size() - 1);
  }
  // Where the route's box is, or the empty one where it would be.
  [[nodiscard]] std::size_t find(const Route& route) const noexcept {
    auto at = home(route);
    while (boxes_[at].first != kNone && !(boxes_[at].route == route))
      at = (at + 1) & (boxes_.size() - 1);
    return at;
  }
  std::uint32_t add_letter(const Letter& content) {
    if (spare_ == kNone) {
      letters_.push_back({content});
      return static_cast<std::uint32_t>(letters_.size() - 1);
    }
    const auto letter = spare_;
    spare_ = letters_[letter].next;
    letters_[letter] = {content};
    return letter;
  }
  void grow() {
    const auto before = std::move(boxes_);
    boxes_.assign(before.empty() ? 64 : 2 * before.size(), {});
    for (const auto& box : before)
      if (box.first != kNone) boxes_[find(box.route)] = box;
  }
  // Empties a box and moves those up that would no longer be found behind it.
  void close(std::size_t hole) noexcept {
    --used_;
    const auto mask = boxes_.size() - 1;
    for (auto at = (hole + 1) & mask; boxes_[at].first != kNone; at = (at + 1) & mask) {
      const auto distance_to_home = (at - home(boxes_[at].route)) & mask;
      if (distance_to_home < ((at - hole) & mask)) continue;
      boxes_[hole] = boxes_[at];
      boxes_[at].first = kNone;
      hole = at;
    }
  }

  std::vector<Box> boxes_;  // a power of two of them, at most half full
  std::vector<Queued> letters_;
  std::size_t used_ = 0;
  std::uint32_t spare_ = kNone;  // letters to use again
};

}  // namespace sinew
