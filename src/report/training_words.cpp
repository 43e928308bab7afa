// Words for the figures of training_findings.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "report/shares.hpp"
#include "report/training_findings.hpp"

namespace sinew::report {
namespace {

/// "7,428"
std::string grouped(std::uint64_t number) {
  auto digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

/// "eight-byte", as people say it.
std::string of_size(std::uint64_t bytes) {
  return bytes == 8 ? "eight-byte" : bytes == 4 ? "four-byte" : fmt::format("{}-byte", bytes);
}

double seconds(double nanoseconds) { return nanoseconds / 1e9; }
double micros(double nanoseconds) { return nanoseconds / 1e3; }

}  // namespace

Finding explain(const Polling& p) {
  Finding finding;
  finding.id = "allreduce-polling";
  finding.claim = fmt::format(
      "{:.1f} {} allreduces a step are polling and skew: ranks ask each other whether there "
      "is "
      "work, and whoever asks early waits for the others.",
      p.per_step(), of_size(p.small_bytes));
  const auto small_total = p.small_calls * p.small_bytes;
  const auto steps = static_cast<double>(p.steps);
  const auto work_a_step = static_cast<double>(p.work_calls) / steps;
  finding.arithmetic = {
      fmt::format("The size that moves the most bytes was reduced {} times on rank {}: {} steps.",
                  grouped(p.steps), p.rank, grouped(p.steps)),
      fmt::format("{} / {} = {:.1f} allreduces of {} bytes a step; {:.1f} a step carry data "
                  "({} bytes a step). So about {:.1f} polls a step find nothing to do.",
                  grouped(p.small_calls), grouped(p.steps), p.per_step(), p.small_bytes,
                  work_a_step, grouped(p.work_bytes / p.steps),
                  std::max(0.0, p.per_step() - work_a_step)),
      fmt::format("They move {} bytes, {:.4f} % of what all allreduces move, and take {:.3f} s: "
                  "{:.1f} % of the time in allreduces, {:.1f} % of the run.",
                  grouped(small_total),
                  percent_of(static_cast<double>(small_total),
                             static_cast<double>(small_total + p.work_bytes)),
                  seconds(p.small_ns), percent_of(p.small_ns, p.all_ns),
                  percent_of(p.small_ns, p.elapsed_ns))};
  // Only a size that costs about as much shows that size is not what costs.
  constexpr double kAboutAsMuch = 2;
  if (p.next_bytes > 0 && p.next_mean_ns > 0 && p.next_mean_ns < kAboutAsMuch * p.mean_ns())
    finding.arithmetic.push_back(fmt::format(
        "One takes {:.0f} us; one of {} bytes, {} times as many, takes {:.0f} us, {:.2f} times as "
        "long. The time does not follow the size: it is waiting, not transfer.",
        micros(p.mean_ns()), grouped(p.next_bytes), grouped(p.next_bytes / p.small_bytes),
        micros(p.next_mean_ns), p.next_mean_ns / p.mean_ns()));
  if (p.quickest_ns > 0 && !p.waited_share)
    finding.arithmetic.push_back(fmt::format(
        "The quickest took {:.1f} us, the mean {:.1f} us. If nobody waited in the quickest, "
        "{:.0f} % of the time is waiting.",
        micros(p.quickest_ns), micros(p.mean_ns()),
        percent_of(p.mean_ns() - p.quickest_ns, p.mean_ns())));
  if (p.waited_share)
    finding.arithmetic.push_back(
        fmt::format("Measured: {:.0f} % of their time passed before the last rank had come.",
                    100 * *p.waited_share));
  finding.evidence = {{"steps", steps, ""},
                      {"small_bytes", static_cast<double>(p.small_bytes), "bytes"},
                      {"small_calls", static_cast<double>(p.small_calls), ""},
                      {"small_calls_a_step", p.per_step(), ""},
                      {"work_calls_a_step", work_a_step, ""},
                      {"small_time", seconds(p.small_ns), "s"},
                      {"share_of_allreduce_time", percent_of(p.small_ns, p.all_ns), "%"},
                      {"mean_time", micros(p.mean_ns()), "us"},
                      {"next_bytes", static_cast<double>(p.next_bytes), "bytes"},
                      {"next_mean_time", micros(p.next_mean_ns), "us"}};
  finding.confidence = p.waited_share ? Confidence::measured : Confidence::inferred;
  finding.advice = {
      "Horovod: a longer HOROVOD_CYCLE_TIME polls less, a larger HOROVOD_FUSION_THRESHOLD makes "
      "fewer reductions.",
      "The cure is to know the order beforehand: buckets whose order all ranks have agreed on need "
      "no negotiation.",
      "Skew is not cured by fewer polls: look for the rank that computes longest, which spends the "
      "least time in communication."};
  finding.command = "sinew profile -- mpirun ... (its column 'wait' tells waiting from transfer)";
  finding.chart = "chart-calls-0";
  finding.cost_s = seconds(p.small_ns);
  return finding;
}

Finding explain(const DataElsewhere& e) {
  Finding finding;
  finding.id = "gradients-elsewhere";
  finding.claim =
      "The gradients travel elsewhere, most likely by NCCL between GPUs: MPI carries control "
      "messages only.";
  finding.arithmetic = {
      fmt::format("{} allreduces of {} bytes on rank {}, {:.3f} s; the largest message of any "
                  "routine has {} bytes ({}).",
                  grouped(e.small_calls), e.small_bytes, e.rank, seconds(e.small_ns),
                  grouped(e.largest_bytes), e.largest_routine),
      fmt::format("All messages of the run together are {} bytes. Gradients of a million "
                  "parameters are 4,000,000 bytes a step.",
                  grouped(e.all_bytes))};
  finding.evidence = {
      {"small_calls", static_cast<double>(e.small_calls), ""},
      {"small_bytes", static_cast<double>(e.small_bytes), "bytes"},
      {"small_time", seconds(e.small_ns), "s"},
      {"mean_time", micros(ratio(e.small_ns, static_cast<double>(e.small_calls))), "us"},
      {"largest_bytes", static_cast<double>(e.largest_bytes), "bytes"},
      {"all_bytes", static_cast<double>(e.all_bytes), "bytes"}};
  finding.advice = {
      "Do not read the cost of gradient exchange from this profile: it is not in it.",
      "See NCCL's part with NCCL_DEBUG=INFO (which algorithm, over what), or profile some steps "
      "with the PyTorch profiler or HOROVOD_TIMELINE and import the trace."};
  finding.command = "sinew import trace.json";
  finding.cost_s = seconds(e.small_ns);
  return finding;
}

Finding explain(const OutOfStep& s) {
  Finding finding;
  finding.id = "ranks-out-of-step";
  finding.claim = fmt::format(
      "The ranks are out of step: rank {} spends {:.2f} s in communication, rank {} {:.2f} s.",
      s.least, seconds(s.least_ns), s.most, seconds(s.most_ns));
  const double spread_ns = s.most_ns - s.least_ns;
  finding.arithmetic = {
      fmt::format("All take part in the same collectives, which end together: who spends more time "
                  "in them came earlier. Rank {}, with the least, is the one the others wait for.",
                  s.least),
      fmt::format(
          "{:.2f} - {:.2f} = {:.2f} s, {:.1f} times and {:.0f} % of the run ({:.2f} s): rank "
          "{} waits at least so long. All ranks together wait at least {:.1f} s, {:.0f} % of "
          "their time.",
          seconds(s.most_ns), seconds(s.least_ns), seconds(spread_ns), ratio(s.most_ns, s.least_ns),
          percent_of(spread_ns, s.elapsed_ns), seconds(s.elapsed_ns), s.most, seconds(s.waited_ns),
          percent_of(s.waited_ns, s.ranks * s.elapsed_ns))};
  finding.evidence = {{"least_time", seconds(s.least_ns), "s"},
                      {"least_rank", static_cast<double>(s.least), ""},
                      {"median_time", seconds(s.median_ns), "s"},
                      {"median_rank", static_cast<double>(s.median), ""},
                      {"most_time", seconds(s.most_ns), "s"},
                      {"most_rank", static_cast<double>(s.most), ""},
                      {"waited_by_all", seconds(s.waited_ns), "s"}};
  finding.advice = {
      fmt::format("Find out what rank {} does beside communicating: input, its share of the data, "
                  "its processor or GPU, other jobs on its host.",
                  s.least)};
  finding.command = "sinew profile -- mpirun ... (its column 'wait', by rank)";
  finding.chart = "chart-ranks";
  finding.cost_s = seconds(spread_ns);
  return finding;
}

Finding explain(const LastReady& l) {
  Finding finding;
  finding.id = "last-ready";
  finding.claim = fmt::format(
      "Rank {} is the one the others wait for: last to be ready in {} of {} "
      "negotiations.",
      l.rank, grouped(l.times), grouped(l.negotiations));
  finding.arithmetic = {
      fmt::format("{} / {} = {:.0f} %. From the first to the last rank that was ready passed "
                  "{:.3f} s, {:.0f} % "
                  "of the time in negotiation (sums over tensors, which overlap).",
                  grouped(l.times), grouped(l.negotiations),
                  percent_of(static_cast<double>(l.times), static_cast<double>(l.negotiations)),
                  seconds(l.waited_ns), percent_of(l.waited_ns, l.negotiated_ns))};
  finding.evidence = {{"rank", static_cast<double>(l.rank), ""},
                      {"times", static_cast<double>(l.times), ""},
                      {"negotiations", static_cast<double>(l.negotiations), ""},
                      {"waited", seconds(l.waited_ns), "s"}};
  finding.confidence = Confidence::measured;
  finding.advice = {
      fmt::format("Find out why rank {} reaches its gradients later: input, its share "
                  "of the data, its processor or GPU.",
                  l.rank)};
  finding.cost_s = seconds(l.waited_ns);
  return finding;
}

}  // namespace sinew::report
