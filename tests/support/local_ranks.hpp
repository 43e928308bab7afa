// Ranks as threads, for tests that need what run_local() hides: segment sizes, decorators, and the
// error of every rank.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <sinew/communicator.hpp>
#include "transport/segment.hpp"

namespace sinew::test {

struct LocalSetup {
  Options options{.timeout = std::chrono::seconds(60)};
  SegmentOptions segment{};
  int cores = 0;               // processors the ranks share; 0: find out
  std::vector<int> domains{};  // of memory, one for each rank; empty: one for all
  bool tcp = false;            // connected by sockets instead of a segment
  bool tls = false;            // then: sealed
  /// Wraps each rank's transport; empty: as it is.
  std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)> decorate{};
};

/// Each rank's error, if it threw one.
std::vector<std::optional<Error>> try_local(int size,
                                            const std::function<void(Communicator&)>& body,
                                            const LocalSetup& setup = {});
/// The same, for bodies that must not throw: rethrows the first error.
void on_local(int size, const std::function<void(Communicator&)>& body,
              const LocalSetup& setup = {});

/// Collects what is wrong from all ranks.
class Complaints {
 public:
  explicit Complaints(int size) : by_rank_(static_cast<std::size_t>(size)) {}
  void add(int rank, const std::string& what) {
    if (!what.empty()) by_rank_[static_cast<std::size_t>(rank)].push_back(what);
  }
  /// The first few, or "".
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> by_rank_;  // a rank writes its own only
};

}  // namespace sinew::test
