#include "measure/tournament.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "measure/probe.hpp"

namespace sinew::bench {

bool Tournament::add(const ContenderSpec& spec) {
  try {
    players_.push_back(
        {spec.name, std::make_shared<Group>(spec.name, ranks_, spec.launch, patience_.start_s)});
    return true;
  } catch (const std::exception& error) {
    failures_.push_back({.contender = spec.name, .story = error.what()});
    return false;
  }
}

void Tournament::add_variation(std::string name, std::string_view of, Variation variation) {
  const auto at = std::ranges::find(players_, of, &Player::name);
  if (at == players_.end()) throw std::invalid_argument("no contender " + std::string(of));
  auto group = at->group;
  players_.push_back({std::move(name), std::move(group), std::move(variation)});
}

Turn Tournament::take_turn(const Player& player, Command command) {
  auto& group = *player.group;
  Turn turn;
  turn.contender = player.name;
  if (player.variation) player.variation(command.what);
  try {
    if (group.play(command, command.limits.budget_s + patience_.turn_s)) {
      turn.samples_us = group.control().samples_us();
      turn.batch = group.control().batch();
      turn.wrong = group.control().wrong();
      turn.remark = group.control().message(0);
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
    for (std::size_t i = 0; i < players_.size(); ++i) {
      const auto& player = players_[(i + static_cast<std::size_t>(number)) % players_.size()];
      round.turns.push_back(take_turn(player, {.what = what, .limits = limits, .round = number}));
    }
    std::erase_if(players_, [&](const auto& player) {
      return round.turn(player.name)->outcome == Outcome::failed;
    });
    round.probe_after_us = flag_half_round_trip_us();
    result.rounds.push_back(std::move(round));
  }
  return result;
}

std::vector<std::string> Tournament::in_play() const {
  std::vector<std::string> names;
  for (const auto& player : players_) names.push_back(player.name);
  return names;
}

}  // namespace sinew::bench
