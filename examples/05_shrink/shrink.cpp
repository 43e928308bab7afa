// Going on after a rank is lost. Start with: sinew launch -n 4 -- example-shrink
#include <cstdio>
#include <vector>

#include <sinew/sinew.hpp>

int main() {
  auto ranks = sinew::connect();
  const int self = ranks.rank(), all = ranks.size();
  if (all < 2) return 0;
  for (int step = 0; step < 10;) {
    if (self == all - 1 && step == 5) return 0;  // is lost, as far as the others can tell
    std::vector<float> gradients(1000, 1);
    bool is_lost = false;
    try {
      ranks.allreduce(std::span(gradients), sinew::ReduceOp::avg);
      ++step;
    } catch (const sinew::Error& error) {
      if (error.code() != sinew::Errc::peer_lost) throw;
      is_lost = true;
    }
    if (!is_lost) continue;
    ranks = ranks.shrink();
    // Some may have finished a step that others have not: all go on from the earliest.
    std::vector<std::int32_t> earliest{step};
    ranks.allreduce(std::span(earliest), sinew::ReduceOp::min);
    step = earliest[0];
    std::printf("rank %d is now rank %d of %d, and goes on from step %d\n", self, ranks.rank(),
                ranks.size(), step);
  }
}
