#include "support/meddler.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace sinew::test {

Meddler::Meddler(tcp::Address behind, const Flip& flip, std::string secret)
    : behind_(behind),
      listener_(tcp::listen_at(tcp::find_address("127.0.0.1"), {})),
      flip_(flip),
      secret_(std::move(secret)),
      thread_([this] { run(); }) {}

Meddler::~Meddler() {
  stop_ = true;
  thread_.join();
}

void Meddler::run() {
  std::vector<Pair> pairs;
  while (!stop_) {
    std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
    for (const auto& pair : pairs)
      for (const auto* socket : {&pair.outside, &pair.inside})
        entries.push_back({pair.open ? socket->get() : -1, POLLIN, 0});
    ::poll(entries.data(), entries.size(), 20);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (entries[1 + 2 * i].revents != 0) pass(pairs[i], true, i == flip_.connection);
      if (entries[2 + 2 * i].revents != 0) pass(pairs[i], false, false);
    }
    if (entries[0].revents == 0) continue;
    pairs.emplace_back();
    pairs.back().outside = tcp::Socket(::accept(listener_.get(), nullptr, nullptr));
    pairs.back().inside = tcp::connect_to(behind_, {});
  }
}

void Meddler::pass(Pair& pair, bool inward, bool meddles) {
  char buffer[65536];
  const auto& from = inward ? pair.outside : pair.inside;
  const auto& to = inward ? pair.inside : pair.outside;
  const auto got = ::recv(from.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (got <= 0) {
    pair.open = false;
    pair.inside = tcp::Socket();
    pair.outside = tcp::Socket();
    return;
  }
  const auto bytes = static_cast<std::size_t>(got);
  if (inward) listen_in(pair, {buffer, bytes});
  if (meddles && flip_.at >= pair.passed && flip_.at < pair.passed + bytes) {
    buffer[flip_.at - pair.passed] =
        static_cast<char>(buffer[flip_.at - pair.passed] ^ (1 << flip_.bit));
    meddled_ = true;
  }
  if (inward) pair.passed += bytes;
  for (std::size_t done = 0; done < bytes;) {
    const auto sent = ::send(to.get(), buffer + done, bytes - done, MSG_NOSIGNAL);
    if (sent > 0) done += static_cast<std::size_t>(sent);
    if (sent < 0 && errno != EAGAIN) return;
    pollfd entry{to.get(), POLLOUT, 0};
    if (sent < 0) ::poll(&entry, 1, 100);
  }
}

void Meddler::listen_in(Pair& pair, std::string_view bytes) {
  pair.last += bytes;
  if (pair.last.find(secret_) != std::string::npos) overheard_ = true;
  if (pair.last.size() > secret_.size()) pair.last.erase(0, pair.last.size() - secret_.size());
}

std::string DetourStore::get(std::string_view key, Deadline deadline) {
  auto card = tcp::read_card(inner_->get(key, deadline));
  meddler_ = std::make_unique<Meddler>(card.address, flip_, secret_);
  card.address = tcp::parse_address(meddler_->address());
  return tcp::write_card(card);
}

}  // namespace sinew::test
