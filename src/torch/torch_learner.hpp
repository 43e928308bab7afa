// A Net as a Learner: its tensors in memory that is not torch's, and a call when a gradient is
// complete.
#pragma once

#include <memory>

#include "torch/net.hpp"
#include "torch/task.hpp"
#include "train/learner.hpp"

namespace sinew {

/// On the CPU tensors are in their homes. On another device, and on the CPU when `apart`, they have
/// copies there.
struct Placement {
  at::Device device = at::kCPU;
  bool apart = false;
};

std::unique_ptr<Learner> make_learner(std::unique_ptr<Net> net, const Task& task,
                                      const Placement& placement);

}  // namespace sinew
