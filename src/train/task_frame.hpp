// What a server gives a worker to do: samples, and the parameters to learn with, as a tensor frame.
#pragma once

#include <span>
#include <vector>

#include <sinew/tensor_frame.hpp>
#include "train/batch.hpp"

namespace sinew {

struct WorkerTask {
  std::uint64_t step = 0;
  std::uint64_t random_key = 0;
  float scale = 0;    // of the gradient
  bool stop = false;  // nothing to do any more: these are the parameters at the end
};

std::vector<std::byte> write_task(const WorkerTask& task, const Batch& batch,
                                  std::span<const float> parameters);
/// Throws Error{invalid_argument} for anything that does not fit.
WorkerTask read_task(std::span<const std::byte> frame, Batch& batch, std::span<float> parameters);

}  // namespace sinew
