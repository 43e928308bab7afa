#include "model/stated.hpp"

#include <fmt/format.h>

#include <cmath>

namespace sinew {
namespace {

constexpr double kSame = 0.03;   // two figures that differ by less are one, rounded
constexpr double kClose = 0.15;  // a figure this near the model's is not objected to

bool near(double a, double b, double share) { return std::abs(a - b) <= share * std::abs(b); }

double rate_gbytes(const Network& network) {
  return 1e3 / network.one_way.segments().back().byte_ps;
}

void check_one(StepPredictor& predictor, std::vector<Objection>& found) {
  const auto& run = predictor.run();
  const double said = run.stated.allreduce_ms;
  if (said <= 0) return;
  const int workers = static_cast<int>(run.workers);
  const auto step = predictor.at(workers, "dense");
  if (near(said, step.communication_ms, kClose)) return;
  const double bytes = run.gradient_bytes(), rate = rate_gbytes(predictor.network());
  const bool once = near(said, bytes / rate / 1e6, kSame);
  found.push_back(
      {.id = once ? "bytes-over-bandwidth" : "allreduce-time",
       .claim = once ? fmt::format("{:.2f} ms is bytes over bandwidth, which is not what an "
                                   "allreduce takes",
                                   said)
                     : fmt::format("an allreduce of {:.2f} MB does not take {:.2f} ms", bytes / 1e6,
                                   said),
       .reason = fmt::format("every rank sends and receives 2(P-1)/P = {:.2f} times its {:.2f} MB: "
                             "{:.2f} ms at {:g} GB/s with {} workers, by {}",
                             2.0 * (workers - 1) / workers, bytes / 1e6, step.communication_ms,
                             rate, workers, step.algorithm),
       .stated = said,
       .modelled = step.communication_ms,
       .unit = "ms"});
}

void check_total(StepPredictor& predictor, std::vector<Objection>& found) {
  const auto& run = predictor.run();
  const double said = run.stated.communication_s;
  if (said <= 0 || run.steps <= 0) return;
  const auto step = predictor.at(static_cast<int>(run.workers), "dense");
  const double modelled = run.steps * step.communication_ms / 1e3;
  if (near(said, modelled, kClose)) return;
  const double all_ranks = run.steps * run.workers;
  const bool in_series = near(run.stated.operations, all_ranks, kSame) && run.workers > 1;
  found.push_back(
      {.id = in_series ? "ranks-in-series" : "communication-total",
       .claim =
           in_series
               ? fmt::format("{:.2f} s adds up the calls of all ranks as if they took turns", said)
               : fmt::format("communication of the run does not add up to {:.2f} s", said),
       .reason = fmt::format("{:.0f} steps, each one allreduce of {:.2f} ms in which {:.0f} ranks "
                             "work at the same time: {:.2f} s{}",
                             run.steps, step.communication_ms, run.workers, modelled,
                             in_series ? fmt::format("; {:.0f} calls are {:.0f} steps of {:.0f} "
                                                     "ranks",
                                                     run.stated.operations, run.steps, run.workers)
                                       : ""),
       .stated = said,
       .modelled = modelled,
       .unit = "s"});
}

void check_scaling(StepPredictor& predictor, std::vector<Objection>& found) {
  const auto& run = predictor.run();
  const auto& stated = run.stated;
  if (stated.at_workers.empty() && stated.scaling.empty()) return;
  const auto first = predictor.at(static_cast<int>(run.workers), "dense");
  std::string points;
  double said = 0, modelled = 0;
  bool wrong = false;
  for (const auto& [workers, seconds] : stated.at_workers) {
    const auto step = predictor.at(workers, "dense");
    modelled = step.communication_ms / first.communication_ms;
    said = stated.communication_s > 0 ? seconds / stated.communication_s : 0;
    wrong = wrong || !near(said, modelled, kClose);
    points += fmt::format("{}x{:.2f} at {} workers, not x{:.2f}", points.empty() ? "" : "; ",
                          modelled, workers, said);
  }
  const bool logarithmic = stated.scaling.starts_with("log") && first.alpha < 0.5;
  if (!wrong && !logarithmic) return;
  found.push_back(
      {.id = logarithmic ? "logarithmic-but-bandwidth-bound" : "scaling",
       .claim = logarithmic
                    ? fmt::format("'{}' scaling on a size that bandwidth decides", stated.scaling)
                    : "communication does not grow like this",
       .reason = fmt::format("beginnings of messages are {:.1f} % of the time, and only they grow "
                             "with the logarithm; bytes grow with (P-1)/P: {}",
                             first.alpha * 100, points),
       .stated = said,
       .modelled = modelled,
       .unit = "x"});
}

}  // namespace

std::vector<Objection> check_stated(StepPredictor& predictor) {
  std::vector<Objection> found;
  check_one(predictor, found);
  check_total(predictor, found);
  check_scaling(predictor, found);
  return found;
}

}  // namespace sinew
