#include "transport/tcp/relay.hpp"

#include <fmt/format.h>

#include <cstring>
#include <thread>

#include <sinew/error.hpp>

namespace sinew::tcp {

Relay::Relay(std::shared_ptr<Peers> peers, int rank, std::vector<int> members, Check check)
    : peers_(std::move(peers)),
      rank_(rank),
      members_(std::move(members)),
      check_(std::move(check)) {}

void Relay::set(std::string_view key, std::string_view value) {
  std::vector<std::byte> word(key.size() + 1 + value.size());
  if (word.size() > wire::kMostControl)
    throw Error(Errc::system, fmt::format("what ranks say about {} is too long", key));
  std::memcpy(word.data(), key.data(), key.size());
  std::memcpy(word.data() + key.size() + 1, value.data(), value.size());
  for (const int member : members_)
    while (member != rank_ && !peers_->tell(member, wire::Kind::word, word)) {
      check_();
      peers_->listen();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

std::string Relay::get(std::string_view key, Deadline deadline) {
  while (true) {
    peers_->listen();
    if (auto word = peers_->take_word(std::string(key))) return std::move(*word);
    check_();
    for (const int member : members_)
      if (member != rank_ && peers_->is_gone(member))
        throw Error(Errc::peer_lost, fmt::format("rank {} is gone", member),
                    {.rank = rank_, .peer = member});
    if (Clock::now() >= deadline) throw_absent(key, "the ranks' connections", deadline);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace sinew::tcp
