#include "support/scheme_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/local_ranks.hpp"

namespace sinew::test {

std::vector<std::vector<Stepped>> run_scheme(const SchemeRun& run) {
  std::size_t elements = 0;
  for (const auto& tensor : run.layout) elements += tensor.elements();
  std::vector<std::vector<Stepped>> steps(
      static_cast<std::size_t>(run.steps),
      std::vector<Stepped>(static_cast<std::size_t>(run.size)));  // a rank writes its own only
  LocalSetup setup;
  setup.tcp = run.tcp;
  on_local(
      run.size,
      [&](Communicator& communicator) {
        const int rank = communicator.rank();
        Compressor compressor(communicator, find_scheme(run.scheme), run.layout, run.options);
        for (int step = 0; step < run.steps; ++step)
          steps[static_cast<std::size_t>(step)][static_cast<std::size_t>(rank)] = take_step(
              compressor, run.gradient ? run.gradient(rank, step)
                                       : gradient(elements, rank, static_cast<unsigned>(step)));
      },
      setup);
  return steps;
}

std::vector<float> exact_gradient(std::size_t elements, int rank, int step) {
  auto values = gradient(elements, rank, static_cast<unsigned>(step));
  for (float& value : values) value = std::round(value * 64) / 64;
  return values;
}

bool ranks_agree(const std::vector<std::vector<Stepped>>& steps) {
  return std::all_of(steps.begin(), steps.end(), [](const std::vector<Stepped>& ranks) {
    const auto& first = ranks.front().result;
    return std::all_of(ranks.begin(), ranks.end(), [&](const Stepped& one) {
      return first.empty() ||
             std::memcmp(one.result.data(), first.data(), first.size() * sizeof(float)) == 0;
    });
  });
}

double lost_share(const std::vector<Stepped>& ranks, ReduceOp op) {
  double worst = 0, largest = 0;
  const double copies = op == ReduceOp::avg ? static_cast<double>(ranks.size()) : 1;
  for (std::size_t i = 0; i < ranks.front().result.size(); ++i) {
    double lost = copies * ranks.front().result[i], size = 0;
    for (const auto& one : ranks) {
      lost += static_cast<double>(one.kept[i]) - one.came_in[i];
      size += std::abs(one.came_in[i]);
    }
    worst = std::max(worst, std::abs(lost));
    largest = std::max(largest, size);
  }
  return largest == 0 ? worst : worst / largest;
}

}  // namespace sinew::test
