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
  const auto early = find_early(incoming, tag);
  if (early != incoming.early.end()) {
    take_early(from, early, data);
    return id;
  }
  incoming.expected.push_back({id, data, tag});
  open_[id] = {true, from, tag, data.size()};
  return id;
}

std::uint64_t Mailbox::recv_any(std::span<std::byte> data, int& source, std::uint32_t tag) {
  const auto id = next_id_++;
  std::deque<Early>::iterator first;
  int sender = kAnyPeer;
  for (int peer = 0; peer < transport_.size(); ++peer) {
    auto& incoming = receiving_[static_cast<std::size_t>(peer)];
    const auto early = find_early(incoming, tag);
    if (early == incoming.early.end()) continue;
    if (sender != kAnyPeer && first->order < early->order) continue;
    first = early;
    sender = peer;
  }
  if (sender != kAnyPeer) {
    source = sender;
    take_early(sender, first, data);
    return id;
  }
  from_anyone_.push_back({id, data, tag, &source});
  open_[id] = {true, kAnyPeer, tag, data.size()};
  return id;
}

// The first of a tag, or the end: behind one that is still coming there is none of its tag to take.
std::deque<Mailbox::Early>::iterator Mailbox::find_early(Incoming& from, std::uint32_t tag) {
  const auto early = std::find_if(from.early.begin(), from.early.end(),
                                  [&](const Early& e) { return e.tag == tag; });
  const bool still_coming =
      from.in_body && from.id == 0 && early != from.early.end() && &*early == &from.early.back();
  return still_coming ? from.early.end() : early;
}

void Mailbox::take_early(int peer, const std::deque<Early>::iterator& early,
                         std::span<std::byte> data) {
  check_length(peer, early->tag, early->data.size(), data.size());
  std::copy(early->data.begin(), early->data.end(), data.begin());
  receiving_[static_cast<std::size_t>(peer)].early.erase(early);
}

// The receive that a message goes to: of those that fit, the first to be asked for.
std::optional<Mailbox::Expected> Mailbox::claim(int peer, std::uint32_t tag, std::size_t bytes) {
  const auto of_tag = [&](std::deque<Expected>& queue) {
    return std::find_if(queue.begin(), queue.end(), [&](const auto& e) { return e.tag == tag; });
  };
  auto* queue = &receiving_[static_cast<std::size_t>(peer)].expected;
  auto at = of_tag(*queue);
  const auto of_anyone = of_tag(from_anyone_);
  if (of_anyone != from_anyone_.end() && (at == queue->end() || of_anyone->id < at->id)) {
    queue = &from_anyone_;
    at = of_anyone;
  }
  if (at == queue->end()) return {};
  check_length(peer, tag, bytes, at->data.size());
  const auto found = *at;
  queue->erase(at);
  if (found.source != nullptr) *found.source = peer;
  open_[found.id].peer = peer;
  return found;
}

void Mailbox::deliver_to_self(std::span<const std::byte> data, std::uint32_t tag) {
  if (const auto to = claim(transport_.rank(), tag, data.size())) {
    std::copy(data.begin(), data.end(), to->data.begin());
    open_.erase(to->id);
    return;
  }
  receiving_[static_cast<std::size_t>(transport_.rank())].early.push_back(
      {{data.begin(), data.end()}, tag, arrived_++});
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
  from.in_body = true;
  from.body = message_to(peer);
  if (const auto to = claim(peer, from.envelope.tag, from.envelope.bytes)) {
    from.id = to->id;
    from.into = to->data;
    return;
  }
  from.id = 0;
  from.early.push_back(
      {std::vector<std::byte>(from.envelope.bytes), from.envelope.tag, arrived_++});
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
    const auto& [data, tag, order] = from.early.back();
    const bool is_first = std::none_of(from.early.begin(), from.early.end() - 1,
                                       [&tag = tag](const Early& e) { return e.tag == tag; });
    const auto to = is_first ? claim(peer, tag, data.size()) : std::nullopt;
    if (!to) continue;
    std::copy(data.begin(), data.end(), to->data.begin());
    open_.erase(to->id);
    from.early.pop_back();
  }
}

std::string Mailbox::describe(std::uint64_t id) const {
  const auto at = open_.find(id);
  if (at == open_.end()) return "a finished message";
  const auto& [receives, peer, tag, bytes] = at->second;
  const auto whom = peer == kAnyPeer ? std::string("any rank") : fmt::format("rank {}", peer);
  return fmt::format("{} {} bytes {} {} with tag {}", receives ? "receiving" : "sending", bytes,
                     receives ? "from" : "to", whom, tag);
}

int Mailbox::peer_of(std::uint64_t id) const noexcept {
  const auto at = open_.find(id);
  return at == open_.end() ? -1 : at->second.peer;
}

}  // namespace sinew
