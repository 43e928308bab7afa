// How good a model is on samples it has not learned from.
#pragma once

#include <sinew/communicator.hpp>
#include "train/dataset.hpp"
#include "train/learner.hpp"

namespace sinew {

/// Over the whole set, which ranks share in batches; the same on all of them.
Score evaluate(Communicator& communicator, Learner& learner, const Dataset& samples,
               std::size_t batch);

}  // namespace sinew
