#include "transport/local/local.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sinew/error.hpp>
#include "transport/cores.hpp"

namespace sinew {

LocalHub::LocalHub(int size, const SegmentOptions& options, int cores, std::vector<int> domains)
    : options_(options),
      cores_(cores > 0 ? cores : allowed_cores()),
      domains_(std::move(domains)),
      segment_(std::make_shared<Segment>(size, options)) {
  for (std::size_t rank = 0; rank < domains_.size(); ++rank)
    segment_->status(static_cast<int>(rank)).domain.store(domains_[rank] + 1);
}

std::shared_ptr<LocalHub> LocalHub::make(int size, const SegmentOptions& options, int cores,
                                         std::vector<int> domains) {
  if (size < 1) throw Error(Errc::invalid_argument, fmt::format("a group of {} ranks", size));
  if (!domains.empty() && domains.size() != static_cast<std::size_t>(size))
    throw Error(Errc::invalid_argument,
                fmt::format("{} domains for {} ranks", domains.size(), size));
  return std::shared_ptr<LocalHub>(new LocalHub(size, options, cores, std::move(domains)));
}

std::unique_ptr<Transport> LocalHub::join(int rank) {
  if (rank < 0 || rank >= segment_->ranks())
    throw Error(Errc::invalid_argument,
                fmt::format("rank {} is not one of {}", rank, segment_->ranks()));
  auto transport = std::make_unique<SharedTransport>(
      "local", segment_, rank, cores_, nullptr,
      [hub = shared_from_this(), rank](std::span<const int> members, std::string_view label,
                                       Deadline, const Check&) {
        return hub->join_subset(members, label, rank);
      });
  transport->board()->set_can_pull(true);  // threads see each other's memory anyway
  return transport;
}

std::unique_ptr<Transport> LocalHub::join_subset(std::span<const int> members,
                                                 std::string_view label, int rank) {
  const auto at = std::find(members.begin(), members.end(), rank);
  const std::scoped_lock lock(mutex_);
  auto& [hub, joined] = subsets_[std::string(label)];
  if (!hub) {
    std::vector<int> domains;
    for (const int member : members)
      if (!domains_.empty()) domains.push_back(domains_[static_cast<std::size_t>(member)]);
    hub = make(static_cast<int>(members.size()), options_, cores_, std::move(domains));
  }
  auto transport = hub->join(static_cast<int>(at - members.begin()));
  if (++joined == members.size()) subsets_.erase(std::string(label));
  return transport;
}

}  // namespace sinew
