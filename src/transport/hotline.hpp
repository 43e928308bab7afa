// What ranks can still say to each other when their communicator is of no use any more: enough to
// agree on who goes on (membership.hpp), and to connect those anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <sinew/transport.hpp>

namespace sinew {

/// Throws Error when it is of no use to wait any longer.
using Check = std::function<void()>;

/// Why a rank cannot go on whose group has gone on without it.
inline Failure given_up(int rank) {
  return {Errc::expelled, rank,
          "rank " + std::to_string(rank) +
              " was silent for too long: the others gave it up and went on without it"};
}

/// Whom to connect anew.
struct Regroup {
  std::span<const int> members;  // in this transport's numbers, ascending; this rank is one
  std::uint32_t epoch = 0;       // that they enter
  std::string label{};           // the same on all of them, and unique on this transport
};

class Hotline {
 public:
  Hotline() = default;
  Hotline(const Hotline&) = delete;
  Hotline& operator=(const Hotline&) = delete;
  virtual ~Hotline() = default;

  /// The longest message it carries.
  [[nodiscard]] virtual std::size_t longest() const noexcept = 0;
  /// Messages from one rank to another arrive whole and in order. False: there is no room now.
  virtual bool tell(int peer, std::span<const std::byte> message) noexcept = 0;
  /// The next message of `peer`: how many bytes it has; 0: there is none.
  virtual std::size_t hear(int peer, std::span<std::byte> message) noexcept = 0;
  /// Whether `peer` is surely dead, or has closed this transport: when asked before hear(), all it
  /// ever said can be heard. Silence is not death.
  virtual bool is_gone(int peer) noexcept = 0;
  /// What `peer` was last known to do, for people.
  [[nodiscard]] virtual std::string last_seen(int peer) const = 0;

  /// A ballot is concluded. Whoever is still on this transport will find out, even if it is stopped
  /// now and this rank is gone by then. The first conclusion counts.
  virtual void conclude(std::uint64_t ballot) noexcept = 0;
  /// 0: nobody has said so.
  virtual std::uint64_t concluded() noexcept = 0;

  /// Sleeps a little, or until something may have come.
  virtual void rest() noexcept = 0;
  /// A new transport between some of the ranks. Works although this one is poisoned. `check` is
  /// called all the while; what it throws comes through.
  virtual std::unique_ptr<Transport> regroup(const Regroup& whom, Deadline deadline,
                                             const Check& check) = 0;
};

}  // namespace sinew
