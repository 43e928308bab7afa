#include "cli/calibrate_measure.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "kernel/copy.hpp"
#include "kernel/reduce.hpp"
#include "measure/os.hpp"
#include "transport/cores.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

struct CpuTime {
  double idle = 0, all = 0;
};

CpuTime cpu_time() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  CpuTime time;
  double value = 0;
  for (int field = 0; field < 8 && file >> value; ++field) {
    time.all += value;
    if (field == 3 || field == 4) time.idle += value;  // idle, and waiting for a disk
  }
  return time;
}

double quantile(std::vector<double>& values, double share) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

bench::Collective bench_collective(Collective collective) {
  for (const auto one : bench::kCollectives)
    if (bench::name(one) == name(collective)) return one;
  throw Error(Errc::unsupported, fmt::format("{} cannot be timed", name(collective)));
}

// The lower quartile of a few dozen samples of at least 20 us.
template <class Work>
Sample timed(double bytes, Work work) {
  constexpr std::uint64_t kSampleNs = 20'000;
  constexpr int kSamples = 40;
  std::uint64_t calls = 1;
  std::vector<double> samples;
  while (samples.size() < kSamples) {
    const auto begin = bench::now_ns();
    for (std::uint64_t i = 0; i < calls; ++i) work();
    const auto took = bench::now_ns() - begin;
    if (took < kSampleNs && calls < 1'000'000)
      calls *= 2;  // also the warm-up
    else
      samples.push_back(static_cast<double>(took) * 1e3 / static_cast<double>(calls));
  }
  return {bytes, std::max(1.0, quantile(samples, 0.25))};
}

struct Pair {
  explicit Pair(double bytes) : from(static_cast<std::size_t>(bytes)), to(from.size()) {}
  std::vector<std::byte> from, to;
};

}  // namespace

double busy_cores() {
  const auto before = cpu_time();
  std::this_thread::sleep_for(500ms);
  const auto after = cpu_time();
  const double all = after.all - before.all;
  const double cores = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  return all > 0 ? (1 - (after.idle - before.idle) / all) * cores : 0;
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

Stopwatch::Stopwatch(const BenchSetup& setup, int ranks)
    : tournament_(ranks), crowded_(ranks > allowed_cores()) {
  if (!tournament_.add({"sinew", sinew_ranks(setup)}))
    throw Error(Errc::system, fmt::format("{} ranks over {} did not start: {}", ranks,
                                          setup.transport, tournament_.failures().back().story));
}

std::vector<double> Stopwatch::samples_us(const Experiment& what) {
  bench::Case one;
  one.collective = bench_collective(what.collective);
  one.bytes = static_cast<std::uint64_t>(what.bytes);
  one.in_place = what.collective == Collective::allreduce;
  one.options = to_options({.algorithm = what.algorithm});
  const bench::Limits limits{.budget_s = crowded_ ? 0.06 : 0.004};  // samples are longer then
  const auto result = tournament_.play(one, 1, limits);
  if (!tournament_.failures().empty())
    throw Error(Errc::system, fmt::format("the ranks that were timed have failed: {}",
                                          tournament_.failures().back().story));
  const auto* turn = result.rounds.front().turn("sinew");
  if (turn == nullptr || turn->outcome != bench::Outcome::measured) return {};
  if (turn->wrong > 0)
    throw Error(Errc::not_verified,
                fmt::format("{} {} gave {} wrong elements", name(what.collective), what.algorithm,
                            turn->wrong));
  return turn->samples_us;
}

std::vector<Timing> Stopwatch::time(const std::vector<Experiment>& experiments, int rounds,
                                    const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<std::vector<double>> samples(experiments.size());
  const auto all = experiments.size() * static_cast<std::size_t>(rounds);
  for (std::size_t turn = 0; turn < all; ++turn) {
    const auto i = turn % experiments.size();
    progress(turn, all);
    const auto more = samples_us(experiments[i]);
    samples[i].insert(samples[i].end(), more.begin(), more.end());
  }
  std::vector<Timing> timings;
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    if (samples[i].empty()) continue;  // does not fit these ranks
    const double low = quantile(samples[i], 0.25);
    timings.push_back({experiments[i], low * 1e6, quantile(samples[i], 0.9) / low});
  }
  return timings;
}

std::vector<Sample> time_reduce(std::span<const double> sizes) {
  const auto reducer = find_reducer(DType::f32, ReduceOp::sum);
  std::vector<Sample> samples;
  for (const double bytes : sizes) {
    Pair pair(bytes);
    samples.push_back(timed(bytes, [&] {
      reducer.pair(pair.to.data(), pair.from.data(), pair.to.size() / sizeof(float));
    }));
  }
  return samples;
}

std::vector<Sample> time_copy(std::span<const double> sizes) {
  std::vector<Sample> samples;
  for (const double bytes : sizes) {
    Pair pair(bytes);
    samples.push_back(
        timed(bytes, [&] { copy_bytes(pair.to.data(), pair.from.data(), pair.to.size(), false); }));
  }
  return samples;
}

}  // namespace sinew
