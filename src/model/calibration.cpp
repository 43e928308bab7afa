#include "model/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include <sinew/error.hpp>
#include "model/predict.hpp"

namespace sinew {
namespace {

// Timings of our own calls are quartiles of many samples, so that short segments can be believed;
// and costs of memory change with every level of cache.
constexpr FitOptions kFit{.most_segments = 8, .least_points = 3, .penalty = 0.05};
constexpr double kLeastPs = 1;  // of a part: a fit divides by it

// The collectives that tell the parts apart, and how often each part is in them. With messages of s
// bytes between P ranks and C = ceil(log2 P):
//   binomial of s:            call + 2 C one_way(s) + C reduce(s)
//   ring of P s:              call + 2 (P-1) exchange(s) + (P-1) reduce(s)
//   recursive doubling of s:  call + C (exchange(s) + reduce(s)), for a power of two of ranks
//   flat of s:                call + wait + publish(s) + (P-1) gather(s) + reduce(s)
//   flat barrier:             call + wait
//   pulled broadcast of s:    call + 2 wait + pull(s)
constexpr std::string_view kTree = "binomial", kRing = "ring", kDoubling = "recursive_doubling",
                           kFlat = "flat", kPull = "pull";

double at(std::span<const Sample> samples, double bytes) {
  if (samples.empty()) return 0;
  // Between two samples as the crow flies; beyond the last at its rate.
  const auto next = std::find_if(samples.begin(), samples.end(),
                                 [&](const Sample& sample) { return sample.bytes >= bytes; });
  if (next == samples.begin()) return next->ps;
  if (next == samples.end()) return samples.back().ps * bytes / samples.back().bytes;
  const auto& before = *std::prev(next);
  const double share = (bytes - before.bytes) / (next->bytes - before.bytes);
  return before.ps + share * (next->ps - before.ps);
}

class Solver {
 public:
  explicit Solver(const Measurements& measured)
      : measured_(measured),
        peers_(measured.ranks - 1),
        depth_(std::bit_width(static_cast<unsigned>(measured.ranks - 1))) {
    for (const auto& timing : measured.timings)
      if (timing.what.collective == Collective::allreduce && timing.what.algorithm == kTree)
        sizes_.push_back(timing.what.bytes);
    std::sort(sizes_.begin(), sizes_.end());
    if (sizes_.empty()) throw Error(Errc::invalid_argument, "no message was timed");
    call_ = find_call();
  }

  [[nodiscard]] double call() const { return call_; }
  [[nodiscard]] double wait() const {
    return std::max(time(Collective::barrier, kFlat, 0) - call_, kLeastPs);
  }
  [[nodiscard]] std::vector<Sample> one_way() const {
    return solve([&](double bytes) {
      return (time(Collective::allreduce, kTree, bytes) - call_ - depth_ * reduce(bytes)) /
             (2 * depth_);
    });
  }
  [[nodiscard]] std::vector<Sample> exchange() const {
    return solve([&](double bytes) {
      return (time(Collective::allreduce, kRing, bytes * measured_.ranks) - call_ -
              peers_ * reduce(bytes)) /
             (2 * peers_);
    });
  }
  /// Publishing and gathering cannot be told apart by one collective; they are alike.
  [[nodiscard]] std::vector<Sample> board_copy() const {
    return solve([&](double bytes) {
      return (time(Collective::allreduce, kFlat, bytes) - call_ - wait() - reduce(bytes)) /
             (1 + peers_);
    });
  }
  /// Empty where ranks may not read each other's memory.
  [[nodiscard]] std::vector<Sample> pulled() const {
    const bool was_timed =
        std::any_of(measured_.timings.begin(), measured_.timings.end(),
                    [](const Timing& timing) { return timing.what.algorithm == kPull; });
    if (!was_timed) return {};
    return solve([&](double bytes) {
      return time(Collective::broadcast, kPull, bytes) - call_ - 2 * wait();
    });
  }

 private:
  [[nodiscard]] double time(Collective collective, std::string_view algorithm, double bytes) const {
    for (const auto& timing : measured_.timings)
      if (timing.what == Experiment{collective, std::string(algorithm), bytes}) return timing.ps;
    throw Error(Errc::invalid_argument,
                fmt::format("{} {} of {} bytes was not timed", name(collective), algorithm, bytes));
  }
  [[nodiscard]] double reduce(double bytes) const { return at(measured_.reduce, bytes); }

  template <class Part>
  [[nodiscard]] std::vector<Sample> solve(Part part) const {
    std::vector<Sample> samples;
    for (const double bytes : sizes_) samples.push_back({bytes, std::max(part(bytes), kLeastPs)});
    return samples;
  }

  // What is left of short calls when their messages are taken away.
  [[nodiscard]] double find_call() const {
    constexpr double kShort = 1024;
    if (!std::has_single_bit(static_cast<unsigned>(measured_.ranks))) return 0;
    std::vector<double> calls;
    for (const double bytes : sizes_) {
      if (bytes > kShort) break;
      const double ring = time(Collective::allreduce, kRing, bytes * measured_.ranks);
      const double doubling = time(Collective::allreduce, kDoubling, bytes);
      const double share = depth_ / (2 * peers_);
      calls.push_back((doubling - share * ring - depth_ * reduce(bytes) / 2) / (1 - share));
    }
    if (calls.empty()) return 0;
    std::sort(calls.begin(), calls.end());
    return std::max(calls[calls.size() / 2], 0.0);
  }

  const Measurements& measured_;
  double peers_, depth_;
  std::vector<double> sizes_{};
  double call_ = 0;
};

// Nothing where the network has no costs for the algorithm.
std::optional<double> predicted_ps(const Network& network, int ranks, const Experiment& what) {
  const auto& algorithm = find_algorithm(what.collective, what.algorithm);
  const Question question{.collective = what.collective, .ranks = ranks, .bytes = what.bytes};
  if (!fits(algorithm, question, network)) return {};
  return static_cast<double>(predict(algorithm, question, network).time);
}

}  // namespace

std::vector<Experiment> instruments(int ranks, bool board, std::span<const double> message_bytes) {
  std::vector<Experiment> all;
  for (const double bytes : message_bytes) {
    all.push_back({Collective::allreduce, std::string(kTree), bytes});
    all.push_back({Collective::allreduce, std::string(kRing), bytes * ranks});
    if (std::has_single_bit(static_cast<unsigned>(ranks)))
      all.push_back({Collective::allreduce, std::string(kDoubling), bytes});
    if (board) all.push_back({Collective::allreduce, std::string(kFlat), bytes});
    if (board) all.push_back({Collective::broadcast, std::string(kPull), bytes});
  }
  if (board) all.push_back({Collective::barrier, std::string(kFlat), 0});
  return all;
}

Network derive(const Measurements& measured) {
  const Solver solver(measured);
  const auto one_way = solver.one_way(), exchange = solver.exchange();
  Network network;
  network.one_way = fit_curve(one_way, kFit);
  network.exchange = fit_curve(exchange, kFit);
  network.reduce = fit_curve(measured.reduce, kFit);
  network.copy = fit_curve(measured.copy, kFit);
  network.call_ps = solver.call();
  network.eager_bytes = -1;
  std::vector<double> errors{left_out_error(one_way, kFit), left_out_error(exchange, kFit)};
  if (measured.board) {
    const auto copies = solver.board_copy();
    network.board = BoardCosts{.wait_ps = solver.wait(), .slot_bytes = measured.slot_bytes};
    network.board->publish = network.board->gather = fit_curve(copies, kFit);
    errors.push_back(left_out_error(copies, kFit));
    if (const auto pulled = solver.pulled(); !pulled.empty()) {
      network.board->pull = fit_curve(pulled, kFit);
      errors.push_back(left_out_error(pulled, kFit));
    }
  }
  network.provenance.ranks = measured.ranks;
  network.provenance.left_out_error = *std::max_element(errors.begin(), errors.end());
  return network;
}

double switch_ps(const Network& network, int ranks, int cores, std::span<const Timing> timings) {
  constexpr double kUnit = 1e6;
  std::vector<double> found;
  for (const auto& timing : timings) {
    const auto predicted = [&](double each) {
      auto with = network;
      with.cores = {.count = cores, .switch_ps = each};
      return predicted_ps(with, ranks, timing.what).value_or(0);
    };
    // Time is a straight line over what a switch takes.
    const double none = predicted(0), slope = predicted(kUnit) - none;
    if (slope > 0) found.push_back(std::max(0.0, (timing.ps - none) / slope * kUnit));
  }
  if (found.empty()) return Cores{}.switch_ps;
  std::sort(found.begin(), found.end());
  return found[found.size() / 2];
}

std::vector<MeasuredRatio> compare(const Network& network, int ranks,
                                   std::span<const Timing> timings) {
  std::vector<MeasuredRatio> ratios;
  for (const auto& [what, ps, noise] : timings)
    if (const auto predicted = predicted_ps(network, ranks, what); predicted.value_or(0) > 0)
      ratios.push_back({what.collective, what.algorithm, what.bytes, ps / *predicted});
  return ratios;
}

ErrorBar error_bar(std::vector<double> deviations) {
  if (deviations.empty()) return {};
  std::sort(deviations.begin(), deviations.end());
  constexpr double kRoom = 1.05;  // two runs of the same thing differ by as much
  const auto last = deviations.size() - 1;
  const auto tail = static_cast<std::size_t>(0.025 * static_cast<double>(last));
  return {std::min(1.0, deviations[tail]) / kRoom, std::max(1.0, deviations[last - tail]) * kRoom};
}

double median_error(std::span<const double> deviations) {
  if (deviations.empty()) return 0;
  std::vector<double> errors;
  for (const double ratio : deviations) errors.push_back(std::abs(1 / ratio - 1));
  std::sort(errors.begin(), errors.end());
  return errors[errors.size() / 2];
}

}  // namespace sinew
