#include "measure/tournament.hpp"

#include <exception>

#include "measure/probe.hpp"

namespace sinew::bench {

bool Tournament::add(const ContenderSpec& spec) {
  try {
    groups_.push_back(std::make_unique<Group>(spec.name, ranks_, spec.launch, patience_.start_s));
    return true;
  } catch (const std::exception& error) {
    failures_.push_back({.contender = spec.name, .story = error.what()});
    return false;
  }
}

Turn Tournament::take_turn(Group& group, const Command& command) {
  Turn turn;
  turn.contender = group.name();
  try {
    if (group.play(command, command.limits.budget_s + patience_.turn_s)) {
      turn.samples_us = group.control().samples_us();
      turn.batch = group.control().batch();
      turn.wrong = group.control().wrong();
    } else {
      turn.outcome = Outcome::unsupported;
    }
  } catch (const std::exception& error) {
    turn.outcome = Outcome::failed;
    turn.story = error.what();
    failures_.push_back({.contender = turn.contender, .story = turn.story});
  }
  return turn;
}

Result Tournament::play(const Case& what, int rounds, const Limits& limits) {
  check(what, ranks_);
  Result result{.what = what, .ranks = ranks_, .rounds = {}};
  for (int number = 0; number < rounds; ++number) {
    Round round;
    round.probe_before_us = flag_half_round_trip_us();
    const std::size_t players = groups_.size();
    for (std::size_t i = 0; i < players; ++i) {
      auto& group = groups_[(i + static_cast<std::size_t>(number)) % players];
      round.turns.push_back(take_turn(*group, {.what = what, .limits = limits, .round = number}));
    }
    std::erase_if(groups_, [&](const auto& group) {
      return round.turn(group->name())->outcome == Outcome::failed;
    });
    round.probe_after_us = flag_half_round_trip_us();
    result.rounds.push_back(std::move(round));
  }
  return result;
}

std::vector<std::string> Tournament::in_play() const {
  std::vector<std::string> names;
  for (const auto& group : groups_) names.push_back(group->name());
  return names;
}

}  // namespace sinew::bench
