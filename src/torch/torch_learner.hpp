// A Net as a Learner: its tensors in memory that is not torch's, and a call when a gradient is
// complete.
#pragma once

#include <memory>

#include "torch/net.hpp"
#include "train/learner.hpp"

namespace sinew {

/// Cross entropy over classes, one label a sample.
std::unique_ptr<Learner> learn_classes(std::unique_ptr<Net> net);
/// Connectionist temporal classification, a sequence of labels a sample.
std::unique_ptr<Learner> learn_sequences(std::unique_ptr<Net> net);

}  // namespace sinew
