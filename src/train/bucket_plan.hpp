// How gradients are grouped for communication: fixed before the first step and equal on all ranks,
// so that no step needs a word about what comes next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sinew/communicator.hpp>
#include <sinew/scheme.hpp>

namespace sinew {

/// A run of the flat gradient that travels in one collective.
struct Bucket {
  std::vector<std::size_t> tensors;  // which parameters, in the order in which they lie here
  std::size_t first = 0;             // element of the flat gradient
  std::size_t elements = 0;
};

struct BucketPlan {
  std::vector<Bucket> buckets;         // in the order in which they are sent
  std::vector<std::size_t> first_of;   // where each parameter begins in the flat gradient
  std::vector<std::size_t> bucket_of;  // of each parameter
  std::vector<TensorSpec> parameters;  // as the learner lists them
  std::size_t elements = 0;            // of the flat gradient, with the gaps between buckets
  std::uint64_t hash = 0;              // of all of this
  /// What a bucket's calls are tagged with, so that two buckets of equal size are told apart.
  [[nodiscard]] std::uint64_t tag(std::size_t bucket) const noexcept { return hash + bucket; }
};

/// Parameters from the last to the first, which is about the order in which a backward pass is done
/// with them; a bucket is closed when it has `bucket_bytes`, the first already at a quarter, so
/// that something is under way early. A tensor is never split.
BucketPlan plan_buckets(std::vector<TensorSpec> parameters, std::uint64_t bucket_bytes);

/// Compares the plans of all ranks, by hash. Throws Error{mismatch} on all of them that names the
/// first parameter in which they differ, or the bucket size.
void agree_on(const BucketPlan& plan, Communicator& communicator);

}  // namespace sinew
