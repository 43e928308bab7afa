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

WorkerGroup::Rejoined WorkerGroup::rejoin(Progress mine, const Error& error) {
  Rejoined result;
  result.story = error.what();
  const std::uint64_t word[] = {static_cast<std::uint64_t>(me()), mine.steps,
                                mine.is_prepared ? 1U : 0U};
  while (true) {
    // Whoever is only late has had the timeout of the call that failed.
    communicator_ = communicator_.shrink();
    std::vector<std::uint64_t> all(std::size(word) *
                                   static_cast<std::size_t>(communicator_.size()));
    try {
      communicator_.allgather(std::span<const std::uint64_t>(word), std::span(all));
    } catch (const Error& again) {
      if (!is_loss(again)) throw;
      continue;
    }
    std::vector<int> members;
    for (std::size_t i = 0; i < all.size(); i += std::size(word)) {
      members.push_back(static_cast<int>(all[i]));
      result.steps = std::max(result.steps, all[i + 1]);
      result.all_prepared = result.all_prepared && all[i + 2] != 0;
    }
    std::set_difference(members_.begin(), members_.end(), members.begin(), members.end(),
                        std::back_inserter(result.lost));
    members_ = std::move(members);
    return result;
  }
}

}  // namespace sinew
