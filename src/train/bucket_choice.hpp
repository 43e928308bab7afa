// How large buckets should be, by what their collectives are predicted to take.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <sinew/communicator.hpp>
#include <sinew/scheme.hpp>

namespace sinew {

/// What is known before the first step.
struct BucketQuestion {
  std::vector<TensorSpec> parameters;
  /// Whether something can travel while the processors compute: over a link to another host, or by
  /// cores that no worker computes on. Otherwise communication is one more thing to compute.
  bool hides = false;
  bool compressed = false;  // then what travels is little, and one selection is better than several
};

/// The bucket size, a power of two from 1 MiB on, with which the last gradient is predicted to
/// arrive first; of equal ones the largest. `takes_us`: an allreduce of so many bytes. How long the
/// backward pass takes nobody knows yet: as long as the communication of the whole gradient, which
/// is where overlap matters most.
std::uint64_t choose_bucket_bytes(const BucketQuestion& question,
                                  const std::function<double(std::uint64_t)>& takes_us);

/// The same by the network model of the communicator, as rank 0 sees it. All ranks together.
std::uint64_t choose_bucket_bytes(const BucketQuestion& question, Communicator& communicator);

/// The bucket size of the last checkpoint in `folder`; 0 where there is none that can be read, as
/// whoever resumes will say.
std::uint64_t bucket_bytes_of_checkpoint(const std::string& folder);

}  // namespace sinew
