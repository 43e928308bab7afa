// Calls that do not belong together: one rank makes another than all the others.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sinew/communicator.hpp>

namespace sinew::test {

struct Mismatch {
  std::string_view what;
  std::function<void(Communicator&, std::vector<float>&, bool odd)> call;
  std::string_view ours, theirs;  // in the text of the error, besides both ranks
};
std::span<const Mismatch> mismatches();

/// Makes the call, then a barrier, and tells how that ended: "<milliseconds>|<code>|<text>".
std::string provoke(Communicator& communicator, const Mismatch& mismatch, std::vector<float>& data,
                    bool odd);
std::string provoke(Communicator& communicator, const Mismatch& mismatch, std::size_t count,
                    bool odd);
/// What is wrong with how it ended, or "". It must be an error that names both sides, in time.
std::string complaint(const Mismatch& mismatch, const std::string& ending, int odd_rank);

}  // namespace sinew::test
