// A network's topology for a given number of ranks: what a message between two of them costs and
// which shared links it passes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/network.hpp"

namespace sinew {

/// What a message costs while it has its links to itself, and those of them that others may use.
struct Leg {
  static constexpr std::size_t kMost = 16;
  Cost cost{};
  std::uint32_t count = 0;
  std::array<std::uint32_t, kMost> links{};
  [[nodiscard]] std::span<const std::uint32_t> shared() const { return {links.data(), count}; }
};

class Wiring {
 public:
  /// Throws Error{invalid_argument} when the levels do not hold so many ranks. `network` must
  /// outlive it.
  Wiring(const Network& network, int size);

  /// `exchange`: the sender receives a message in the same round.
  [[nodiscard]] Leg leg(int from, int to, double bytes, bool exchange);
  /// Bytes a picosecond that each shared link carries.
  [[nodiscard]] const std::vector<double>& capacities() const noexcept { return capacities_; }
  /// Whether one rank can stand for all others, as far as the network is concerned.
  [[nodiscard]] bool is_uniform() const noexcept { return uniform_; }

  /// How much later than the others a rank begins, and how long its work takes: 1 is as usual.
  [[nodiscard]] Picoseconds delay(int rank) const noexcept {
    return persons_.empty() ? 0 : persons_[static_cast<std::size_t>(rank)].delay;
  }
  [[nodiscard]] double slowness(int rank) const noexcept {
    return persons_.empty() ? 1 : persons_[static_cast<std::size_t>(rank)].slowness;
  }
  [[nodiscard]] bool used_exchange() const noexcept { return used_exchange_; }
  /// Whether any message passed a link of this kind, by index in Topology::links.
  [[nodiscard]] const std::vector<bool>& used() const noexcept { return used_; }

 private:
  struct Person {
    Picoseconds delay = 0;
    double slowness = 1;
    double byte_ps = 0;
  };
  struct Tier {                        // a level, resolved
    std::int64_t ranks = 1;            // of one member
    std::uint32_t first_resource = 0;  // its shared links begin there
  };

  void add_persons(int size);
  void add_tiers(int size);
  [[nodiscard]] std::int64_t slot(int rank) const noexcept;
  [[nodiscard]] Cost at(const Curve& one_way, const Curve& exchange, double bytes, bool both);
  bool take_path(int from, int to, double bytes, bool exchange, Leg& leg);
  void take_levels(int from, int to, double bytes, bool exchange, Leg& leg);

  const Network& network_;
  bool uniform_;
  std::int64_t nodes_ = 1;
  std::vector<Person> persons_;
  std::vector<Tier> tiers_;
  std::uint32_t path_resources_ = 0;
  std::vector<double> capacities_;
  std::vector<bool> used_;
  bool used_exchange_ = false;
};

}  // namespace sinew
