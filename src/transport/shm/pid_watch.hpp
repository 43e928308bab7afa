// Notices dead processes through descriptors of their ids: no polling of names, no reuse of ids.
#pragma once

#include <poll.h>

#include <span>
#include <vector>

#include "transport/shared_transport.hpp"

namespace sinew {

class PidWatch final : public Watch {
 public:
  /// pids[r] is rank r's process; the own rank's is not watched.
  PidWatch(std::span<const int> pids, int rank);
  PidWatch(const PidWatch&) = delete;
  PidWatch& operator=(const PidWatch&) = delete;
  ~PidWatch() override;
  int find_dead() noexcept override;
  /// Whether find_dead() has somebody to report; leaves it to be reported.
  bool is_anyone_dead() noexcept;

 private:
  std::vector<pollfd> entries_;
  std::vector<int> ranks_;
};

}  // namespace sinew
