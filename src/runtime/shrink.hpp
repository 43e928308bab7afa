// Drives the decision who goes on after a failure, over a transport's hotline, and connects those.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <sinew/transport.hpp>

namespace sinew {

struct Shrink {
  std::uint32_t epoch = 1;              // that the survivors enter
  std::chrono::nanoseconds patience{};  // with ranks that are not surely dead, and silent
};

struct Survivors {
  std::unique_ptr<Transport> transport;
  std::vector<int> members;  // by their old ranks
};

/// Called by all who are left. Throws Error{expelled} on a rank that the others went on without,
/// Error{minority} where too few are left, Error{timeout} when they cannot agree in time.
Survivors shrink(Transport& transport, const Shrink& how);

}  // namespace sinew
