// Speed of the simulator alone: messages of virtual time a second, schedules made on the way.
#include <benchmark/benchmark.h>

#include <string>

#include "model/simulate.hpp"

namespace {

void simulate_one(benchmark::State& state, const char* algorithm, int size, double eager_bytes,
                  bool collapse) {
  sinew::Network network;
  network.one_way = sinew::Curve(5e6, 40);
  network.reduce = sinew::Curve(0, 100);
  network.eager_bytes = eager_bytes;
  const auto& row = sinew::find_algorithm(sinew::Collective::allreduce, algorithm);
  double messages = 0;
  for (auto _ : state) {
    const auto workload = sinew::workload_of(row, {.size = size, .node_of = {}}, 1 << 20);
    const auto outcome = sinew::simulate(workload, network, {.collapse = collapse});
    benchmark::DoNotOptimize(outcome.end.at);
    messages += static_cast<double>(outcome.messages);
  }
  state.counters["messages/s"] = benchmark::Counter(messages, benchmark::Counter::kIsRate);
}

}  // namespace

BENCHMARK_CAPTURE(simulate_one, halving_doubling_16384, "halving_doubling", 16384, -1, false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_one, halving_doubling_16384_eager, "halving_doubling", 16384, 1 << 20,
                  false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_one, ring_1024, "ring", 1024, -1, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_one, ring_100000_by_symmetry, "ring", 100000, -1, true)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_one, recursive_doubling_1048576_by_symmetry, "recursive_doubling",
                  1 << 20, -1, true)
    ->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
