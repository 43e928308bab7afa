#include "transport/local/local.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sinew/error.hpp>
#include "transport/cores.hpp"

namespace sinew {

LocalHub::LocalHub(int size, const SegmentOptions& options, int cores)
    : options_(options),
      cores_(cores > 0 ? cores : allowed_cores()),
      segment_(std::make_shared<Segment>(size, options)) {}

std::shared_ptr<LocalHub> LocalHub::make(int size, const SegmentOptions& options, int cores) {
  if (size < 1) throw Error(Errc::invalid_argument, fmt::format("a group of {} ranks", size));
  return std::shared_ptr<LocalHub>(new LocalHub(size, options, cores));
}

std::unique_ptr<Transport> LocalHub::join(int rank) {
  if (rank < 0 || rank >= segment_->ranks())
    throw Error(Errc::invalid_argument,
                fmt::format("rank {} is not one of {}", rank, segment_->ranks()));
  auto transport = std::make_unique<SharedTransport>(
      "local", segment_, rank, cores_, nullptr,
      [hub = shared_from_this(), rank](std::span<const int> members, std::string_view label,
                                       Deadline deadline) {
        return hub->join_subset(members, label, rank, deadline);
      });
  transport->board()->set_can_pull(true);  // threads see each other's memory anyway
  return transport;
}

std::unique_ptr<Transport> LocalHub::join_subset(std::span<const int> members,
                                                 std::string_view label, int rank, Deadline) {
  const auto at = std::find(members.begin(), members.end(), rank);
  const std::scoped_lock lock(mutex_);
  auto& [hub, joined] = subsets_[std::string(label)];
  if (!hub) hub = make(static_cast<int>(members.size()), options_, cores_);
  auto transport = hub->join(static_cast<int>(at - members.begin()));
  if (++joined == members.size()) subsets_.erase(std::string(label));
  return transport;
}

}  // namespace sinew
