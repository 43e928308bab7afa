// Ranks as threads of one process: the shared-memory transport over one mapping, so that tests,
// sanitizers and notebooks need no processes.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "transport/shared_transport.hpp"

namespace sinew {

/// Where the threads of a group meet. Keep it alive as long as any of its transports.
class LocalHub : public std::enable_shared_from_this<LocalHub> {
 public:
  /// `cores`: how many processors the ranks share; 0: as many as this process may use. `domains`:
  /// the memory domain of each rank, for threads that are bound to different ones; empty: one.
  static std::shared_ptr<LocalHub> make(int size, const SegmentOptions& options = {}, int cores = 0,
                                        std::vector<int> domains = {});
  /// One rank's transport; call it once for each rank, from any thread.
  std::unique_ptr<Transport> join(int rank);

 private:
  LocalHub(int size, const SegmentOptions& options, int cores, std::vector<int> domains);
  std::unique_ptr<Transport> join_subset(std::span<const int> members, std::string_view label,
                                         int rank);

  SegmentOptions options_;
  int cores_;
  std::vector<int> domains_;
  std::shared_ptr<Segment> segment_;
  std::mutex mutex_;
  std::map<std::string, std::pair<std::shared_ptr<LocalHub>, std::size_t>> subsets_;
};

}  // namespace sinew
