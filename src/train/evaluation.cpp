#include "train/evaluation.hpp"

#include <algorithm>

namespace sinew {

Score evaluate(Communicator& communicator, Learner& learner, const Dataset& samples,
               std::size_t batch) {
  const auto count = samples.samples();
  const auto size = static_cast<std::size_t>(communicator.size());
  std::vector<std::uint32_t> which;
  Batch values;
  Score mine;
  for (auto first = batch * static_cast<std::size_t>(communicator.rank()); first < count;
       first += batch * size) {
    which.clear();
    for (auto i = first; i < std::min(count, first + batch); ++i)
      which.push_back(static_cast<std::uint32_t>(i));
    samples.fill(which, values);
    mine += learner.evaluate(values);
  }
  double sums[] = {mine.loss, static_cast<double>(mine.errors), static_cast<double>(mine.labels),
                   static_cast<double>(mine.samples)};
  communicator.allreduce(std::span<double>(sums));
  return {sums[0], static_cast<std::uint64_t>(sums[1]), static_cast<std::uint64_t>(sums[2]),
          static_cast<std::uint64_t>(sums[3])};
}

}  // namespace sinew
