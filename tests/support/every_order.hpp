// Tries every order of events on the code that decides who goes on: each delivery of each message,
// each crash between any two of them, each suspicion, right or wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "transport/membership.hpp"

namespace sinew::test {

struct Trouble {
  int size = 3;
  int crashes = 1;
  int suspicions = 0;
  Ballot rounds = 4;      // of ballots; whoever needs more is taken for timed out
  bool all_here = false;  // that all have come is known from the beginning: fewer orders
  std::uint64_t most_states = 20'000'000;
  Membership::Rule rule = &may_go_on;
  /// Changes what is sent, to see whether it is noticed.
  std::function<void(Notice&)> spoil{};
};

struct Tried {
  std::uint64_t states = 0, endings = 0, decided = 0;
  std::string fault;  // "": none found
};

Tried try_every_order(const Trouble& trouble);

}  // namespace sinew::test
