// Ok-Topk in one process, by its definition.
#pragma once

#include <cstdint>
#include <vector>

namespace sinew::test {

using Vectors = std::vector<std::vector<float>>;  // by rank

/// The k largest magnitudes of those `among`, ties by lowest index.
std::vector<bool> largest(const std::vector<float>& values, std::size_t k, bool zeros_too,
                          const std::vector<bool>& among);

/// One step of all ranks at a time: top k of each, summed in rank order, top k of that.
struct Oracle {
  Vectors kept;
  std::vector<std::vector<bool>> chosen;  // by each rank in the last step
  std::vector<float> step(const Vectors& gradients, std::size_t k);
};

}  // namespace sinew::test
