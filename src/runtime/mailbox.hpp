// Point-to-point messages: matched by tag above the transport, in order for each (peer, tag).
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <sinew/transport.hpp>

namespace sinew {

/// The peer of a receive that takes a message of any rank, until there is one.
inline constexpr int kAnyPeer = -2;

class Mailbox {
 public:
  explicit Mailbox(Transport& transport)
      : transport_(transport),
        sending_(static_cast<std::size_t>(transport.size())),
        receiving_(static_cast<std::size_t>(transport.size())) {}

  /// Buffers are borrowed until the message is done. Messages to oneself are fine.
  std::uint64_t send(std::span<const std::byte> data, int to, std::uint32_t tag);
  std::uint64_t recv(std::span<std::byte> data, int from, std::uint32_t tag);
  /// Of the messages that are there the one that came first, or the next that comes: no sender is
  /// passed over. `source`, whose it was, is borrowed like the buffer. Among receives that fit a
  /// message the first to be asked for gets it.
  std::uint64_t recv_any(std::span<std::byte> data, int& source, std::uint32_t tag);

  [[nodiscard]] bool busy() const noexcept { return !open_.empty(); }
  [[nodiscard]] bool is_done(std::uint64_t id) const noexcept { return !open_.contains(id); }
  /// Moves what can move; `moved` says whether anything did. A message that does not fit its
  /// receive throws Error{mismatch}.
  Progress poll(bool& moved);
  /// "receiving 64 bytes from rank 1 with tag 7", for error texts.
  [[nodiscard]] std::string describe(std::uint64_t id) const;
  /// -1 if it is done, kAnyPeer if nobody has sent it yet and anybody may.
  [[nodiscard]] int peer_of(std::uint64_t id) const noexcept;

 private:
  struct Envelope {
    std::uint64_t bytes;
    std::uint32_t tag, reserved;
  };
  struct Outgoing {
    std::uint64_t id;
    std::span<const std::byte> data;
    Envelope envelope;
    Transfer header, body;
    bool header_sent = false;
  };
  struct Expected {
    std::uint64_t id;
    std::span<std::byte> data;
    std::uint32_t tag;
    int* source = nullptr;  // where to say who sent it; null: who asked knows
  };
  struct Early {  // arrived before anyone asked for it
    std::vector<std::byte> data;
    std::uint32_t tag;
    std::uint64_t order;  // of arrival, over all peers
  };
  struct Incoming {  // what one peer sends us
    Envelope envelope{};
    Transfer header, body;
    bool in_body = false;
    std::uint64_t id = 0;  // the receive it goes to; 0: into `early.back()`
    std::span<std::byte> into;
    std::deque<Expected> expected;
    std::deque<Early> early;
  };
  struct Open {
    bool receives;
    int peer;
    std::uint32_t tag;
    std::size_t bytes;
  };

  Progress poll_sending(int peer, bool& moved);
  Progress poll_receiving(int peer, bool& moved);
  void begin_body(Incoming& from, int peer);
  std::optional<Expected> claim(int peer, std::uint32_t tag, std::size_t bytes);
  static std::deque<Early>::iterator find_early(Incoming& from, std::uint32_t tag);
  void take_early(int peer, const std::deque<Early>::iterator& early, std::span<std::byte> data);
  void check_peer(int peer) const;
  void check_length(int peer, std::uint32_t tag, std::size_t sent, std::size_t wanted) const;
  void deliver_to_self(std::span<const std::byte> data, std::uint32_t tag);

  Transport& transport_;
  std::vector<std::deque<Outgoing>> sending_;
  std::vector<Incoming> receiving_;
  std::deque<Expected> from_anyone_;
  std::map<std::uint64_t, Open> open_;
  std::uint64_t next_id_ = 1;
  std::uint64_t arrived_ = 0;
};

}  // namespace sinew
