// What collectives cost on a network, looked up: each is simulated once with every algorithm that
// fits, and the best is kept.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/predict.hpp"
#include "model/scheme_phases.hpp"

namespace sinew {

/// One collective by its best algorithm, or several in a row.
struct Costed {
  Moment end{};  // duration, and what it consists of
  double low_ps = 0, high_ps = 0;
  double bytes_per_rank = 0;
  double messages = 0;
  std::string algorithm{};  // "halving_doubling", or "pairwise + bruck"
  Costed& operator+=(const Costed& next);
};

class CostBook {
 public:
  /// `algorithms`: names to choose from; empty: all.
  explicit CostBook(Network network, std::vector<std::string> algorithms = {});

  /// `private_sizes`: only by algorithms that need not know others' sizes. Throws
  /// Error{invalid_argument} where no algorithm fits.
  const Costed& best(Collective collective, int ranks, double bytes, double imbalance = 1,
                     bool private_sizes = false);
  /// A step of a scheme: its phases one after another.
  Costed sum(std::span<const Phase> phases, int ranks);

  [[nodiscard]] const Network& network() const noexcept { return network_; }
  /// Algorithms that were not tried because simulating them would take too long.
  [[nodiscard]] const std::vector<std::string>& left_out() const noexcept { return left_out_; }

 private:
  using Key = std::tuple<Collective, int, double, double, bool>;
  Costed find(Collective collective, int ranks, double bytes, bool private_sizes);
  Costed find_ragged(Collective collective, int ranks, double bytes, double imbalance);
  [[nodiscard]] bool is_wanted(const Algorithm& algorithm) const;
  /// An algorithm, and what it takes at the very least.
  struct Entrant {
    const Algorithm* algorithm;
    double least_ps;
  };
  [[nodiscard]] std::vector<Entrant> entrants(const Question& question) const;
  static bool is_feasible(const Algorithm& algorithm, const Question& question);
  void leave_out(const Algorithm& algorithm);
  [[nodiscard]] Costed costed(const Moment& end, double bytes_per_rank, double messages,
                              std::string algorithm) const;

  Network network_;
  std::vector<std::string> wanted_;
  std::map<Key, Costed> known_;
  std::vector<std::string> left_out_;
};

}  // namespace sinew
