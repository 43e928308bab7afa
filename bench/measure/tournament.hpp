// Contenders resident side by side, measured in turns: what the machine does to one round it does
// to all of them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/group.hpp"
#include "measure/result.hpp"

namespace sinew::bench {

struct ContenderSpec {
  std::string name;
  Launcher launch;
};

struct Failure {
  std::string contender;
  std::string story;
};

class Tournament {
 public:
  struct Patience {
    double start_s = 60;  // until all ranks of a contender have joined
    double turn_s = 60;   // beyond the budget of a turn: the check, and slow libraries
  };

  explicit Tournament(int ranks) : Tournament(ranks, Patience{}) {}
  Tournament(int ranks, Patience patience) : ranks_(ranks), patience_(patience) {}

  /// False when it did not start; failures() says why.
  bool add(const ContenderSpec& spec);
  /// A contender that is the ranks of another one, given a case that differs in its options: in the
  /// same processes and the same memory. Which physical pages a process got may change times by
  /// several times, so this is how algorithms of one library compare.
  using Variation = std::function<void(Case&)>;
  void add_variation(std::string name, std::string_view of, Variation variation);

  /// `rounds` rounds in which every contender still in play has one turn, the first a different
  /// one each round. A contender that dies or hangs is out, and the rest go on.
  Result play(const Case& what, int rounds, const Limits& limits);

  [[nodiscard]] std::vector<std::string> in_play() const;
  [[nodiscard]] const std::vector<Failure>& failures() const noexcept { return failures_; }

 private:
  struct Player {
    std::string name;
    std::shared_ptr<Group> group;
    Variation variation{};
  };

  Turn take_turn(const Player& player, Command command);

  int ranks_;
  Patience patience_;
  std::vector<Player> players_;
  std::vector<Failure> failures_;
};

}  // namespace sinew::bench
