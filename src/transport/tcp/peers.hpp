// What a rank knows of the others from their control connections: who is alive, who has left, who
// is where, and the first reason to give up.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sinew/transport.hpp>
#include "transport/tcp/control_link.hpp"

namespace sinew::tcp {

class Peers {
 public:
  /// `control`: a connection to each other rank, by rank; the own place is empty.
  Peers(int rank, std::uint32_t epoch, std::vector<Stream> control);
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  /// Readable when one of the control connections is.
  [[nodiscard]] int descriptor() const noexcept { return epoll_.get(); }
  [[nodiscard]] bool failed() const noexcept { return failure_.has_value(); }
  [[nodiscard]] Failure failure() const;

  void enter(OpTag tag, const OpDescriptor& descriptor) noexcept;
  [[nodiscard]] OpTag entered() const noexcept { return entered_; }
  /// A frame of that operation has come from the peer.
  void saw(int peer, std::uint32_t sequence) noexcept {
    auto& last = states_[static_cast<std::size_t>(peer)].sequence;
    if (sequence > last) last = sequence;
  }

  /// Reads what has come, and finds out what it means.
  Progress poll() noexcept;
  /// Tells everyone that this rank waits, if it has not done so lately.
  void beat(Clock::time_point now) noexcept;
  /// A data connection to `peer` has ended. Pending: the control connection will tell why, or the
  /// peer has left and nothing more was `awaited` from it.
  Progress ended(int peer, bool awaited) noexcept;
  /// The connection by which messages come from `peer` has ended: all it sent has been received.
  void drained(int peer) noexcept { state(peer).drained = true; }
  /// In good order, and nothing of it is on its way.
  [[nodiscard]] bool has_left(int peer) const noexcept {
    const auto& other = states_[static_cast<std::size_t>(peer)];
    return other.left.has_value() && other.drained;
  }
  /// `peer` was found in another operation: finds out in which, and poisons.
  Progress mismatched(int peer) noexcept;
  /// The first reason is everybody's; every later one is dropped.
  void poison(const Failure& failure) noexcept;
  /// This rank needs nobody any more.
  void say_goodbye() noexcept;

  [[nodiscard]] std::string who_is_late() const;

  // What goes on after a failure.
  /// Reads and sends whatever can be, poisoned or not.
  void listen() noexcept;
  /// False: no room now.
  bool tell(int peer, wire::Kind kind, std::span<const std::byte> payload) noexcept;
  /// The next notice from `peer`, or empty.
  std::vector<std::byte> take_notice(int peer);
  /// What somebody has said about `key`.
  std::optional<std::string> take_word(const std::string& key);
  /// Whether `peer` closed its end, or died; all it said has been read by then.
  [[nodiscard]] bool is_gone(int peer) const noexcept {
    return states_[static_cast<std::size_t>(peer)].gone;
  }
  void conclude(std::uint64_t ballot) noexcept;
  [[nodiscard]] std::uint64_t concluded() const noexcept { return concluded_; }
  [[nodiscard]] std::string last_seen(int peer) const;

 private:
  struct State {
    bool open = false;  // the connection is usable
    bool gone = false;  // its end was closed
    bool drained = false;
    std::deque<std::vector<std::byte>> notices{};
    std::optional<std::uint32_t> left{};  // said goodbye after this operation
    std::uint32_t sequence = 0;           // the last operation it was seen in
    Clock::time_point heard{};
    Clock::time_point unanswered{};  // since when its machine acknowledges nothing
    Clock::time_point ended{};       // when a data connection was found closed
    wire::History history{};
    std::uint32_t histories = 0;  // how many have come
    std::string route{};          // both addresses
  };
  State& state(int peer) noexcept { return states_[static_cast<std::size_t>(peer)]; }
  ControlLink& link(int peer) noexcept { return links_[static_cast<std::size_t>(peer)]; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(states_.size()); }
  [[nodiscard]] wire::Frame frame(wire::Kind kind) const noexcept;
  [[nodiscard]] wire::History history() const noexcept;
  void send_history(int peer, wire::Kind kind, bool asks) noexcept;
  void read(int peer);
  void take(int peer, const wire::Frame& frame, std::span<const std::byte> payload);
  void take_failure(const Failure& failure);
  void take_word(std::span<const std::byte> payload);
  void watch_machine(int peer, Clock::time_point now) noexcept;
  Progress look_around() noexcept;
  [[nodiscard]] std::string difference(int peer) const;

  int rank_;
  std::uint32_t epoch_;
  Socket epoll_;
  std::deque<ControlLink> links_;  // by rank; a deque because links stay where they are
  std::vector<State> states_;
  std::array<wire::Entered, wire::kHistory> entered_lately_{};  // by sequence
  OpTag entered_;
  std::optional<Failure> failure_;
  int suspect_ = -1;  // said that it is in another operation than ours
  Clock::time_point waits_since_{};
  Clock::time_point last_beat_{};
  std::uint32_t beats_ = 0;  // in this operation
  bool has_left_ = false;
  std::uint64_t concluded_ = 0;  // ballot by which some went on
  std::map<std::string, std::string> words_;
};

}  // namespace sinew::tcp
