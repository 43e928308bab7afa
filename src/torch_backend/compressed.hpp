// Compressed allreduce of DDP's buckets, whose state belongs to parameters: buckets may be cut
// anew, and what was kept goes with the parameters into the new ones.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sinew/compression.hpp>
#include "torch_backend/backend.hpp"
#include "torch_backend/device_gradient.hpp"

namespace sinew {

/// What a bucket keeps from step to step.
struct KeptBucket {
  std::vector<TensorSpec> layout;
  State state;
};

class CompressedBuckets : public std::enable_shared_from_this<CompressedBuckets> {
 public:
  /// `on_device`: whether buckets stay where they are, as far as the scheme can do with that, and
  /// only what is sent comes to the host. Without it, those that are on a device do.
  CompressedBuckets(c10::intrusive_ptr<Backend> backend, const std::string& scheme,
                    CompressionOptions options, std::optional<bool> on_device);

  /// Replaces a bucket by its mean over ranks, as far as the scheme sends it. `layout`: the
  /// bucket's parameters, in the order in which they lie in it.
  WorkPtr allreduce(at::Tensor bucket, std::vector<TensorSpec> layout);

  /// Of the last step of each bucket, in the order in which buckets came first.
  [[nodiscard]] std::vector<StepReport> reports();
  /// Waits for what is under way.
  [[nodiscard]] std::vector<KeptBucket> save();
  /// Buckets that come from now on take what is theirs out of it.
  void load(std::vector<KeptBucket> kept);

 private:
  struct Bucket {
    std::vector<TensorSpec> layout;
    Compressor compressor;
    StepReport report;
    std::unique_ptr<DeviceGradient> far;  // of buckets that stay on their device
  };
  [[nodiscard]] bool stays(const at::Tensor& bucket) const;
  WorkPtr allreduce_staged(at::Tensor bucket, std::vector<TensorSpec> layout);
  WorkPtr allreduce_far(at::Tensor bucket, std::vector<TensorSpec> layout);
  [[nodiscard]] Backend::Job job_of(const at::Tensor& bucket, const at::Tensor& used,
                                    const std::vector<TensorSpec>& layout);
  Bucket& bucket_for(Communicator& communicator, std::vector<TensorSpec> layout);
  void take_over(Compressor& compressor, const std::vector<TensorSpec>& layout) const;
  [[nodiscard]] std::vector<KeptBucket> snapshot() const;
  /// Runs in the lane, and waits for it.
  void run(const std::function<void()>& body);

  c10::intrusive_ptr<Backend> backend_;
  const SchemeInfo& scheme_;
  CompressionOptions options_;
  std::optional<bool> on_device_;
  // The lane's alone:
  std::vector<Bucket> buckets_;
  std::vector<KeptBucket> kept_;  // of buckets that are gone, or have not been seen again
};

}  // namespace sinew
