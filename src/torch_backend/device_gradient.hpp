// A bucket that stays on its device, with what was not sent of it: the largest elements are found
// there, and only they come to the host. Written with torch's own operations, so that it runs
// wherever tensors are, and finds the same elements everywhere.
//
// A device that many processes share lets each of them wait for its turn, so that waiting costs
// more than computing: a step waits once, for what was chosen.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include <sinew/scheme.hpp>

namespace sinew {

class DeviceGradient final : public FarGradient {
 public:
  /// The bucket of the step that comes: flat, float32. What is done with it is enqueued on the
  /// stream that is current then.
  void set_bucket(at::Tensor bucket) { gradient_ = std::move(bucket); }
  /// By tensor name, as ErrorFeedback does. Nothing where nothing was ever kept.
  void save(const std::vector<TensorSpec>& layout, State& state) const;

  [[nodiscard]] std::size_t elements() const override;
  Chosen choose(std::uint64_t most) override;
  std::span<float> fetch() override;
  void take(std::span<const std::uint32_t> indices) override;
  void commit(const Items& result) override;
  void store() override;
  void roll_back(ErrorFeedback::Keep keep) override;
  void clear_gradient() override;
  void keep(std::span<const float> kept) override;

 private:
  void begin();
  [[nodiscard]] Chosen bring(const at::Tensor& places);
  [[nodiscard]] at::Tensor exactly(const at::Tensor& magnitudes, std::int64_t most) const;
  [[nodiscard]] at::Tensor host(std::int64_t elements, at::ScalarType type) const;
  [[nodiscard]] at::Tensor to_device(const void* data, std::size_t elements,
                                     at::ScalarType type) const;

  at::Tensor gradient_;
  at::Tensor kept_;                      // undefined: nothing
  at::Tensor sum_;                       // undefined: outside of a step
  at::Tensor whole_, indices_, values_;  // on the host: what fetch() and choose() gave
  std::vector<std::uint32_t> sent_;
};

}  // namespace sinew
