// What control connections are for when nothing else works: deciding who goes on, and connecting
// those anew.
#include <fmt/format.h>

#include <algorithm>

#include "transport/descriptor.hpp"
#include "transport/hotline.hpp"
#include "transport/tcp/peers.hpp"

namespace sinew::tcp {
namespace {

constexpr std::size_t kMostWords = 65536;  // that nobody has asked for

}  // namespace

Failure Peers::failure() const {
  return concluded_ != 0 ? given_up(rank_) : failure_.value_or(Failure{});
}

void Peers::listen() noexcept {
  for (int peer = 0; peer < size(); ++peer)
    if (state(peer).open) {
      link(peer).flush();
      read(peer);
    }
}

bool Peers::tell(int peer, wire::Kind kind, std::span<const std::byte> payload) noexcept {
  return !state(peer).open || link(peer).send(frame(kind), payload);
}

std::vector<std::byte> Peers::take_notice(int peer) {
  auto& notices = state(peer).notices;
  if (notices.empty()) return {};
  auto notice = std::move(notices.front());
  notices.pop_front();
  return notice;
}

void Peers::take_word(std::span<const std::byte> payload) {
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  const auto end = text.find('\0');
  if (end != std::string_view::npos && words_.size() < kMostWords)
    words_.emplace(text.substr(0, end), text.substr(end + 1));
}

std::optional<std::string> Peers::take_word(const std::string& key) {
  auto word = words_.extract(key);
  return word.empty() ? std::nullopt : std::optional(std::move(word.mapped()));
}

// Passed on once by everybody, like a failure: then no single death can hide it.
void Peers::conclude(std::uint64_t ballot) noexcept {
  if (concluded_ != 0) return;
  concluded_ = ballot;
  auto header = frame(wire::Kind::concluded);
  header.total = ballot;
  for (int peer = 0; peer < size(); ++peer)
    if (state(peer).open) link(peer).send(header, {});
}

std::string Peers::last_seen(int peer) const {
  const auto& other = states_[static_cast<std::size_t>(peer)];
  auto text = fmt::format("last in operation #{}", other.sequence);
  const auto& ours = entered_lately_[other.sequence % wire::kHistory];
  if (ours.tag.sequence == other.sequence && other.sequence != 0)
    text += fmt::format(", {}", describe(ours.descriptor));
  return text + fmt::format("; last heard {:.1f} s ago",
                            std::chrono::duration<double>(Clock::now() - other.heard).count());
}

}  // namespace sinew::tcp
