// Ranks, network and clock in one thread, all by one seed: the production communicator, executor
// and membership code over a network that delays, cuts and breaks, among ranks that crash and
// pause.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <sinew/communicator.hpp>
#include "support/fibers.hpp"

namespace sinew::test {

using SimTime = std::chrono::nanoseconds;

/// What happens to the ranks, and when.
struct Fate {
  struct Pause {
    int rank;
    SimTime from, until;
  };
  struct Cut {
    std::vector<bool> side;  // of each rank: messages across wait until it is over
    SimTime from, until;
  };
  int size = 3;
  SimTime longest_delay{};
  std::map<int, SimTime> crashes;
  std::vector<Pause> pauses;
  std::vector<Cut> cuts;
  std::map<int, std::pair<SimTime, SimTime>> jumps;  // of a rank's clock: when, how far
  // To see whether it is noticed.
  bool silence_is_death = false;  // a rank that does not answer is taken for surely dead
  bool changes_a_bit = false;     // of some messages
  [[nodiscard]] bool is_only_crashes() const {
    return pauses.empty() && cuts.empty() && jumps.empty();
  }
};

class SimulatedWorld {
 public:
  SimulatedWorld(Fate fate, std::uint64_t seed);
  ~SimulatedWorld();

  /// Runs `body` as every rank until all have ended, crashed, or `limit` has passed. False: that.
  bool run(const std::function<void(Communicator&)>& body, const Options& options, SimTime limit);
  [[nodiscard]] bool has_crashed(int rank) const {
    return crashed_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::uint64_t turns() const { return turns_; }

  // For the transports.
  struct Message {
    SimTime arrives;
    OpTag tag;
    std::vector<std::byte> bytes;
  };
  struct Group;
  [[nodiscard]] SimTime now() const { return now_; }
  [[nodiscard]] SimTime clock_of(int rank) const;
  SimTime arrival(int from, int to);
  /// Whether `to` could not hear `from` now, although both live.
  [[nodiscard]] bool is_silent(int from, int to) const;
  [[nodiscard]] bool changes_a_bit() { return fate_.changes_a_bit && random_() % 64 == 0; }
  [[nodiscard]] bool silence_is_death() const { return fate_.silence_is_death; }
  /// The calling rank lets others run, for about that long.
  void rest(int rank, SimTime about);
  std::map<std::string, std::shared_ptr<Group>>& groups() { return groups_; }
  std::mt19937_64& random() { return random_; }

 private:
  void bury(Group& group, int rank);

  Fate fate_;
  std::mt19937_64 random_;
  SimTime now_{0};
  std::vector<bool> crashed_;
  std::vector<SimTime> wakes_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::map<std::string, std::shared_ptr<Group>> groups_;
  std::uint64_t turns_ = 0;
};

}  // namespace sinew::test
