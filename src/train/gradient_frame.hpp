// One worker's gradient as a tensor frame: whole, or its largest elements, with the rest kept for
// the next time.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <sinew/scheme.hpp>
#include <sinew/tensor_frame.hpp>
#include "kernel/top_k.hpp"
#include "train/learner.hpp"

namespace sinew {

class GradientPacker {
 public:
  /// `density`: share of the elements that travel; 0: all of them.
  GradientPacker(std::size_t elements, double density);

  /// `words` travel along. The gradient is left as it is.
  std::vector<std::byte> pack(std::span<const float> gradient, const Score& score);
  [[nodiscard]] std::uint64_t items() const noexcept { return items_; }

 private:
  std::optional<TopK> top_;
  ErrorFeedback feedback_;
  std::uint64_t items_ = 0;  // of the last frame
};

/// Adds what a frame holds to `sum`, and gives the score that came along. Throws
/// Error{invalid_argument} for anything that does not fit.
Score add_gradient(std::span<const std::byte> frame, std::span<float> sum);

}  // namespace sinew
