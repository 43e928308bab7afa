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

// Nodes of four ranks that share a NIC: every message between nodes is a flow on links that others
// use.
void simulate_shared(benchmark::State& state, const char* algorithm, int size, double deviation) {
  sinew::Network network;
  network.one_way = sinew::Curve(1e6, 10);
  network.topology.links = {{.name = "nic", .one_way = sinew::Curve(5e6, 40)}};
  network.topology.levels = {{.name = "node", .size = 4},
                             {.name = "cluster", .link = 0, .sharing = sinew::Sharing::member}};
  network.noise.deviation = deviation;
  const auto& row = sinew::find_algorithm(sinew::Collective::allreduce, algorithm);
  const auto workload = sinew::workload_of(row, {.size = size, .node_of = {}}, 1 << 24);
  double flows = 0;
  for (auto _ : state) {
    const auto outcome = sinew::simulate(workload, network);
    benchmark::DoNotOptimize(outcome.end.at);
    flows += static_cast<double>(outcome.flows);
  }
  state.counters["flows/s"] = benchmark::Counter(flows, benchmark::Counter::kIsRate);
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

BENCHMARK_CAPTURE(simulate_shared, halving_doubling_4096, "halving_doubling", 4096, 0)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_shared, halving_doubling_1024_noisy, "halving_doubling", 1024, 0.1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_shared, ring_512, "ring", 512, 0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_shared, ring_512_noisy, "ring", 512, 0.1)->Unit(benchmark::kMillisecond);

BENCHMARK_CAPTURE(simulate_one, recursive_doubling_1048576, "recursive_doubling", 1 << 20, -1,
                  false)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

BENCHMARK_MAIN();
