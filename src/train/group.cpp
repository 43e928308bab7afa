#include "train/group.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace sinew {

bool is_loss(const Error& error) noexcept {
  return error.code() == Errc::peer_lost || error.code() == Errc::timeout;
}

WorkerGroup::WorkerGroup(Communicator& communicator)
    : communicator_(communicator), members_(static_cast<std::size_t>(communicator.size())) {
  std::iota(members_.begin(), members_.end(), 0);
}

WorkerGroup::Rejoined WorkerGroup::rejoin(std::uint64_t steps, const Error& error) {
  Rejoined result;
  result.story = error.what();
  const auto mine = static_cast<std::uint64_t>(me());
  while (true) {
    // Whoever is only late has had the timeout of the call that failed.
    communicator_ = communicator_.shrink();
    const std::uint64_t word[2] = {mine, steps};
    std::vector<std::uint64_t> all(2 * static_cast<std::size_t>(communicator_.size()));
    try {
      communicator_.allgather(std::span<const std::uint64_t>(word), std::span(all));
    } catch (const Error& again) {
      if (!is_loss(again)) throw;
      continue;
    }
    std::vector<int> members;
    for (std::size_t i = 0; i < all.size(); i += 2) {
      members.push_back(static_cast<int>(all[i]));
      result.steps = std::max(result.steps, all[i + 1]);
    }
    std::set_difference(members_.begin(), members_.end(), members.begin(), members.end(),
                        std::back_inserter(result.lost));
    members_ = std::move(members);
    return result;
  }
}

}  // namespace sinew
