// What the ranks of an MPI job check among themselves. Each check is run by all ranks of one job;
// what is wrong becomes lines of text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::test {

using Lines = std::vector<std::string>;

struct RankCheck {
  std::string_view name;
  Lines (*run)();
};
/// The only list of them.
std::span<const RankCheck> rank_checks();

}  // namespace sinew::test
