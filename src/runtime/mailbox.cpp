#include "runtime/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace sinew {
namespace {

Transfer message_to(int peer) {
  Transfer transfer;
  transfer.peer = peer;
  transfer.channel = kMessageChannel;
  return transfer;
}

}  // namespace

void Mailbox::check_peer(int peer) const {
  if (peer < 0 || peer >= transport_.size())
    throw Error(Errc::invalid_argument, fmt::format("rank {}: rank {} does not exist among {}",
                                                    transport_.rank(), peer, transport_.size()));
}

void Mailbox::check_length(int peer, std::uint32_t tag, std::size_t sent,
                           std::size_t wanted) const {
  if (sent != wanted)
    throw Error(Errc::mismatch,
                fmt::format("rank {} receives {} bytes from rank {} with tag {}, but {} were sent",
                            transport_.rank(), wanted, peer, tag, sent),
                {.rank = transport_.rank(), .peer = peer, .operation = "recv"});
}

std::uint64_t Mailbox::send(std::span<const std::byte> data, int to, std::uint32_t tag) {
  check_peer(to);
  const auto id = next_id_++;
  if (to == transport_.rank()) {
    deliver_to_self(data, tag);
    return id;
  }
  sending_[static_cast<std::size_t>(to)].push_back(
      {id, data, {data.size(), tag, 0}, message_to(to), message_to(to)});
  open_[id] = {false, to, tag, data.size()};
  return id;
}

std::uint64_t Mailbox::recv(std::span<std::byte> data, int from, std::uint32_t tag) {
  check_peer(from);
  const auto id = next_id_++;
  auto& incoming = receiving_[static_cast<std::size_t>(from)];
  const auto early = std::find_if(incoming.early.begin(), incoming.early.end(),
                                  [&](const Early& e) { return e.tag == tag; });
  const bool still_coming = incoming.in_body && incoming.id == 0 && early != incoming.early.end() &&
                            &*early == &incoming.early.back();
  if (early != incoming.early.end() && !still_coming) {
    check_length(from, tag, early->data.size(), data.size());
    std::copy(early->data.begin(), early->data.end(), data.begin());
    incoming.early.erase(early);
    return id;
  }
  incoming.expected.push_back({id, data, tag});
  open_[id] = {true, from, tag, data.size()};
  return id;
}

void Mailbox::deliver_to_self(std::span<const std::byte> data, std::uint32_t tag) {
  auto& incoming = receiving_[static_cast<std::size_t>(transport_.rank())];
  const auto at = std::find_if(incoming.expected.begin(), incoming.expected.end(),
                               [&](const Expected& e) { return e.tag == tag; });
  if (at == incoming.expected.end()) {
    incoming.early.push_back({{data.begin(), data.end()}, tag});
    return;
  }
  check_length(transport_.rank(), tag, data.size(), at->data.size());
  std::copy(data.begin(), data.end(), at->data.begin());
  open_.erase(at->id);
  incoming.expected.erase(at);
}

Progress Mailbox::poll(bool& moved) {
  for (int peer = 0; peer < transport_.size(); ++peer) {
    if (peer == transport_.rank()) continue;
    if (poll_sending(peer, moved) == Progress::failed) return Progress::failed;
    if (poll_receiving(peer, moved) == Progress::failed) return Progress::failed;
  }
  return open_.empty() ? Progress::done : Progress::pending;
}

Progress Mailbox::poll_sending(int peer, bool& moved) {
  auto& queue = sending_[static_cast<std::size_t>(peer)];
  while (!queue.empty()) {
    auto& message = queue.front();
    if (!message.header_sent) {
      const auto progress =
          transport_.send(message.header, std::as_bytes(std::span(&message.envelope, 1)));
      if (progress != Progress::done) return progress;
      message.header_sent = moved = true;
    }
    if (!message.data.empty()) {
      const auto before = message.body.moved;
      const auto progress = transport_.send(message.body, message.data);
      moved |= message.body.moved != before;
      if (progress != Progress::done) return progress;
    }
    open_.erase(message.id);
    queue.pop_front();
  }
  return Progress::done;
}

void Mailbox::begin_body(Incoming& from, int peer) {
  const auto at = std::find_if(from.expected.begin(), from.expected.end(),
                               [&](const Expected& e) { return e.tag == from.envelope.tag; });
  from.in_body = true;
  from.body = message_to(peer);
  if (at != from.expected.end()) {
    check_length(peer, at->tag, from.envelope.bytes, at->data.size());
    from.id = at->id;
    from.into = at->data;
    from.expected.erase(at);
    return;
  }
  from.id = 0;
  from.early.push_back({std::vector<std::byte>(from.envelope.bytes), from.envelope.tag});
  from.into = from.early.back().data;
}

Progress Mailbox::poll_receiving(int peer, bool& moved) {
  auto& from = receiving_[static_cast<std::size_t>(peer)];
  while (true) {
    if (!from.in_body) {
      if (from.header.peer < 0) from.header = message_to(peer);
      from.header.awaited = !from.expected.empty();
      const auto progress =
          transport_.recv(from.header, std::as_writable_bytes(std::span(&from.envelope, 1)));
      if (progress != Progress::done) return progress;
      moved = true;
      from.header = {};
      begin_body(from, peer);
    }
    if (!from.into.empty()) {
      const auto before = from.body.moved;
      const auto progress = transport_.recv(from.body, from.into);
      moved |= from.body.moved != before;
      if (progress != Progress::done) return progress;
    }
    from.in_body = false;
    if (from.id != 0) {
      open_.erase(from.id);
      continue;
    }
    // Somebody may have asked for it while it was arriving.
    const auto tag = from.early.back().tag;
    const auto at = std::find_if(from.expected.begin(), from.expected.end(),
                                 [&](const Expected& e) { return e.tag == tag; });
    const bool is_first = std::none_of(from.early.begin(), from.early.end() - 1,
                                       [&](const Early& e) { return e.tag == tag; });
    if (at == from.expected.end() || !is_first) continue;
    check_length(peer, tag, from.early.back().data.size(), at->data.size());
    std::copy(from.early.back().data.begin(), from.early.back().data.end(), at->data.begin());
    open_.erase(at->id);
    from.expected.erase(at);
    from.early.pop_back();
  }
}

std::string Mailbox::describe(std::uint64_t id) const {
  const auto at = open_.find(id);
  if (at == open_.end()) return "a finished message";
  const auto& [receives, peer, tag, bytes] = at->second;
  return fmt::format("{} {} bytes {} rank {} with tag {}", receives ? "receiving" : "sending",
                     bytes, receives ? "from" : "to", peer, tag);
}

int Mailbox::peer_of(std::uint64_t id) const noexcept {
  const auto at = open_.find(id);
  return at == open_.end() ? -1 : at->second.peer;
}

}  // namespace sinew
