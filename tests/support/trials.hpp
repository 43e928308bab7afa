// How many times a test draws its luck: few by default, all with SINEW_FULL=1, and any part of them
// by hand, such as `run_folder_test --trials=51..100`. A trial's number is its seed.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace sinew::test {

struct Trials {
  unsigned first = 1, last = 0;
  [[nodiscard]] unsigned count() const { return last + 1 - first; }
};

inline Trials trials(unsigned few, unsigned full) {
  Trials chosen{1, std::getenv("SINEW_FULL") != nullptr ? full : few};
  for (const auto& word : testing::internal::GetArgvs())
    std::sscanf(word.c_str(), "--trials=%u..%u", &chosen.first, &chosen.last);
  return chosen;
}

}  // namespace sinew::test
