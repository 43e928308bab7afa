#include "report/performance_findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/text.hpp"
#include "report/shares.hpp"
#include "report/wire.hpp"
#include "report/words.hpp"

namespace sinew::report {
namespace {

constexpr double kNotable = 0.05;  // of the elapsed time

double waiting_s(const Summary& summary) {
  double sum = 0;
  for (const auto& rank : summary.ranks) sum += rank.waited_s.value_or(0);
  return ratio(sum, static_cast<double>(summary.ranks.size()));
}
double communication_s(const Summary& summary) {
  double sum = 0;
  for (const auto& rank : summary.ranks) sum += rank.communication_s;
  return ratio(sum, static_cast<double>(summary.ranks.size()));
}
bool has(const Summary& summary, std::string_view id) {
  return std::any_of(summary.findings.begin(), summary.findings.end(),
                     [&](const auto& finding) { return finding.id == id; });
}
Benefit benefit(double seconds, double low, double high, std::string how) {
  return {{seconds}, {low}, {high}, std::move(how)};
}

}  // namespace

std::vector<Finding> find_performance(const Summary& summary) {
  constexpr std::array kAll{small_collectives,   waiting_not_transfer,
                            straggler,           load_imbalance,
                            oversubscribed,      under_the_link,
                            other_algorithm,     dense_phase,
                            density_not_held,    no_overlap,
                            small_buckets,       one_large_bucket,
                            costly_compression,  slow_data,
                            rests_on_assumptions};
  std::vector<Finding> findings;
  for (const auto find : kAll)
    if (auto found = find(summary)) findings.push_back(std::move(*found));
  return findings;
}

std::optional<Finding> small_collectives(const Summary& summary) {
  constexpr std::uint64_t kSmall = 4096, kMany = 100;
  if (has(summary, "allreduce-polling") || has(summary, "gradients-elsewhere")) return {};
  std::uint64_t calls = 0;
  double moving = 0, moved = 0;
  for (const auto& routine : summary.routines) {
    if (!collective_of(routine.routine) || routine.routine.ends_with("arrier")) continue;
    for (const auto& row : routine.sizes)
      if (row.bytes > 0 && row.bytes <= kSmall) {
        calls += row.calls;
        moving += row.seconds - row.waited_s;
        moved += static_cast<double>(row.moved);
      }
  }
  const auto ranks = static_cast<double>(std::max<std::size_t>(summary.ranks.size(), 1));
  const auto each = static_cast<double>(calls) / ranks, time = moving / ranks;
  if (each < kMany || time < kNotable * summary.elapsed_s) return {};
  const auto iterations = static_cast<double>(summary.steps.iterations.size());
  // Fused, an iteration has one; without iterations, ten are assumed to become one.
  const auto left = iterations > 0 ? std::min(1.0, iterations / each) : 0.1;
  Finding finding;
  finding.id = "small-collectives";
  finding.claim = fmt::format(
      "{:.0f} collectives of at most 4 KiB a rank cost {:.0f} % of the run, and it is their number "
      "that costs, not their bytes.",
      each, percent_of(time, summary.elapsed_s));
  finding.arithmetic = {
      fmt::format("{:.0f} calls a rank took {} without waiting: {} each, for {} bytes on average.",
                  each, seconds(time), seconds(time / each),
                  static_cast<std::uint64_t>(moved / static_cast<double>(calls)))};
  finding.evidence = {{"calls_a_rank", each, ""},
                      {"time_without_waiting", time, "s"},
                      {"mean_time", 1e6 * time / each, "us"},
                      {"mean_bytes", moved / static_cast<double>(calls), "bytes"}};
  finding.confidence = timed(summary);
  finding.advice = {"Put what is reduced in the same place into one buffer and reduce it once."};
  finding.benefit = benefit(time * (1 - left), time * (1 - left) * 0.5, time * (1 - left),
                            fmt::format("{} x (1 - {:.2g}): the calls that fusing leaves; half of "
                                        "it if copies cost as much",
                                        seconds(time), left));
  finding.command = fmt::format("sinew bench allreduce -p {} -b 8 -e 64K", summary.ranks.size());
  finding.chart = "chart-calls-0";
  finding.cost_s = time;
  return finding;
}

std::optional<Finding> waiting_not_transfer(const Summary& summary) {
  const auto waited = waiting_s(summary), all = communication_s(summary);
  if (!summary.waited_share || waited < 0.5 * all || all < 0.1 * summary.elapsed_s) return {};
  Finding finding;
  finding.id = "waiting-not-transfer";
  finding.claim = fmt::format(
      "{:.0f} % of the time in communication is waiting for ranks that had not come: a faster "
      "network would leave it as it is.",
      percent_of(waited, all));
  finding.arithmetic = {fmt::format(
      "A rank spends {} in communication; {} of it passed before all ranks that were needed had "
      "come. Moving the data took {}, {:.1f} % of the run.",
      seconds(all), seconds(waited), seconds(all - waited),
      percent_of(all - waited, summary.elapsed_s))};
  finding.evidence = {{"communication", all, "s"},
                      {"waiting", waited, "s"},
                      {"moving", all - waited, "s"},
                      {"waiting_share", percent_of(waited, all), "%"}};
  finding.confidence = timed(summary);
  finding.advice = {
      "Look at what ranks do between their calls: uneven data, slow input, other work on the "
      "host."};
  finding.benefit =
      benefit(waited, 0, waited, "all waiting, if ranks came at the same moment; 0 if they cannot");
  finding.command = "sinew report RUN --format perfetto > timeline.json  # ui.perfetto.dev";
  finding.chart = "chart-ranks";
  finding.cost_s = waited;
  return finding;
}

std::optional<Finding> straggler(const Summary& summary) {
  constexpr std::uint64_t kFew = 20;
  const auto ranks = summary.ranks.size();
  if (!summary.imbalance || ranks < 2 || summary.imbalance->compared < kFew) return {};
  const auto& [mean, most, busiest, compared, last_rank, last] = *summary.imbalance;
  const auto share = ratio(static_cast<double>(last), static_cast<double>(compared));
  const auto waited = waiting_s(summary);
  if (share < (ranks == 2 ? 0.8 : 0.6) || waited < kNotable * summary.elapsed_s) return {};
  double others = 0, own = 0;
  for (const auto& rank : summary.ranks) {
    const auto busy = rank.split ? rank.split->elapsed_s - rank.split->exposed_s() : rank.other_s();
    (rank.rank == last_rank ? own : others) += busy;
  }
  others /= static_cast<double>(ranks - 1);
  Finding finding;
  finding.id = "straggler";
  finding.claim = fmt::format(
      "Rank {} holds the others up: it came last to {:.0f} % of the "
      "collectives, and a rank waits {} for others.",
      last_rank, 100 * share, seconds(waited));
  finding.arithmetic = {
      fmt::format("{} of {} collectives began when rank {} came; by chance it would be 1 of {}.",
                  last, compared, last_rank, ranks),
      fmt::format("It works {} outside of communication, the others {} on average.", seconds(own),
                  seconds(others))};
  finding.evidence = {{"rank", static_cast<double>(last_rank), ""},
                      {"last", static_cast<double>(last), ""},
                      {"collectives", static_cast<double>(compared), ""},
                      {"waiting", waited, "s"},
                      {"busy", own, "s"},
                      {"busy_others", others, "s"}};
  finding.confidence = timed(summary);
  finding.advice = {
      fmt::format("Find out what rank {} does longer: its input, its share of the "
                  "data, its core or GPU, other jobs on its host.",
                  last_rank)};
  const auto gain = std::max(0.0, own - others);
  finding.benefit = benefit(gain, 0.5 * gain, gain,
                            "what it works longer than the others' mean; less where another rank "
                            "is next to be last");
  finding.command = "sinew doctor";
  finding.chart = "chart-heat";
  finding.cost_s = waited;
  return finding;
}

std::optional<Finding> load_imbalance(const Summary& summary) {
  constexpr double kUneven = 1.1;
  if (!summary.imbalance || straggler(summary)) return {};
  const auto& imbalance = *summary.imbalance;
  const auto waited = waiting_s(summary);
  if (imbalance.most_busy_s < kUneven * imbalance.mean_busy_s ||
      waited < kNotable * summary.elapsed_s)
    return {};
  Finding finding;
  finding.id = "load-imbalance";
  finding.claim = fmt::format(
      "Work is uneven: rank {} is busy for {}, {:.2f} times the mean, and a rank waits {}.",
      imbalance.busiest, seconds(imbalance.most_busy_s),
      imbalance.most_busy_s / imbalance.mean_busy_s, seconds(waited));
  finding.arithmetic = {
      fmt::format("Outside of communication a rank spends {} on average and {} at most; a "
                  "collective ends when the slowest has come.",
                  seconds(imbalance.mean_busy_s), seconds(imbalance.most_busy_s))};
  finding.evidence = {{"mean_busy", imbalance.mean_busy_s, "s"},
                      {"most_busy", imbalance.most_busy_s, "s"},
                      {"rank", static_cast<double>(imbalance.busiest), ""},
                      {"waiting", waited, "s"}};
  finding.confidence = timed(summary);
  finding.advice = {"Give each rank the same amount of work, not the same number of samples."};
  const auto gain = imbalance.most_busy_s - imbalance.mean_busy_s;
  finding.benefit = benefit(gain, 0.5 * gain, gain, "the longest less the mean");
  finding.command = "sinew report RUN --format csv -o tables  # ranks.csv";
  finding.chart = "chart-ranks";
  finding.cost_s = waited;
  return finding;
}

std::optional<Finding> oversubscribed(const Summary& summary) {
  if (!summary.cores) return {};
  std::map<std::string, int> on_host;
  for (const auto& rank : summary.ranks) ++on_host[rank.host];
  int most = 0;
  std::string host;
  for (const auto& [name, ranks] : on_host)
    if (ranks > most) {
      most = ranks;
      host = name;
    }
  if (most <= *summary.cores) return {};
  Finding finding;
  finding.id = "oversubscribed";
  finding.claim =
      fmt::format("{} ranks share {} {}: a rank that is needed often has no core to run on.", most,
                  *summary.cores, *summary.cores == 1 ? "core" : "cores");
  finding.arithmetic = {
      fmt::format("{} ranks on {} with {} cores: {:.1f} ranks a core. A rank that waits gives its "
                  "core away and gets it back a time slice later, which is milliseconds.",
                  most, host.empty() ? "one host" : host, *summary.cores,
                  static_cast<double>(most) / *summary.cores)};
  finding.evidence = {{"ranks", static_cast<double>(most), ""},
                      {"cores", static_cast<double>(*summary.cores), ""}};
  finding.confidence = Confidence::measured;
  finding.advice = {fmt::format("Start at most {} ranks on this host.", *summary.cores),
                    "Times of such a run say how long the machine took, not the network: do not "
                    "compare them with another machine's."};
  finding.command = "sinew doctor";
  finding.chart = "chart-lanes";
  finding.cost_s = waiting_s(summary) * (1 - static_cast<double>(*summary.cores) / most);
  finding.benefit = benefit(finding.cost_s, 0, communication_s(summary),
                            "the share of waiting that ranks without a core cause, if evenly");
  return finding;
}

std::optional<Finding> under_the_link(const Summary& summary) {
  constexpr double kFar = 0.3, kReachable = 0.8;
  constexpr std::uint64_t kBulk = 1U << 20U;
  if (!summary.link) return {};
  double wire = 0, time = 0;
  const auto ranks = static_cast<double>(std::max<std::size_t>(summary.ranks.size(), 1));
  for (const auto& row : summary.bandwidth) {
    if (row.from_bytes < kBulk || row.bytes_per_s.value <= 0) continue;
    for (const auto& routine : summary.routines)
      for (const auto& bin : routine.bins)
        if (routine.name == row.routine && bin.bytes == row.from_bytes) {
          time += (bin.seconds - bin.waited_s) / ranks;
          wire += row.bytes_per_s.value * (bin.seconds - bin.waited_s) / ranks;
        }
  }
  const auto link = summary.link->bytes_per_s.value;
  const auto share = ratio(ratio(wire, time), link);
  if (time < kNotable * summary.elapsed_s || share > kFar) return {};
  Finding finding;
  finding.id = "under-the-link";
  finding.claim = fmt::format(
      "Large messages move at {:.1f} % of what the link carries ({:.2f} of {:.1f} GB/s).",
      100 * share, wire / time / 1e9, link / 1e9);
  finding.arithmetic = {
      fmt::format("A rank moves {:.3g} GB in {} of communication that is not waiting: {:.2f} GB/s. "
                  "The link: {}.",
                  wire / 1e9, seconds(time), wire / time / 1e9, summary.link->about)};
  finding.evidence = {{"bytes_per_second", wire / time, "bytes/s"},
                      {"link", link, "bytes/s"},
                      {"share", 100 * share, "%"},
                      {"time", time, "s"}};
  finding.confidence = summary.link->bytes_per_s.source == Source::modelled ? Confidence::modelled
                                                                            : Confidence::assumed;
  finding.advice = {
      "Check that traffic takes the interface that is meant, and that several ranks "
      "of a host do not share one link.",
      "Measure the link itself before believing its label."};
  const auto best = wire / (kReachable * link);
  finding.benefit =
      benefit(time - best, 0, time - wire / link,
              fmt::format("{:.3g} GB at 80 % of the link take {}", wire / 1e9, seconds(best)));
  finding.command = "sinew calibrate -o net.toml && sinew report RUN --net net.toml";
  finding.chart = "chart-bandwidth";
  finding.cost_s = time - best;
  return finding;
}

std::optional<Finding> other_algorithm(const Summary& summary) {
  constexpr double kMuch = 1.5;
  if (!summary.model) return {};
  const ModelRow* worst = nullptr;
  const auto gain = [](const ModelRow& row) {
    return (row.used_s.value - row.best_s.value) * static_cast<double>(row.asked.calls);
  };
  for (const auto& row : summary.model->rows)
    if (row.used_s.value > kMuch * row.best_s.value && row.best != row.asked.algorithm &&
        (worst == nullptr || gain(row) > gain(*worst)))
      worst = &row;
  if (worst == nullptr || gain(*worst) < 0.01 * summary.elapsed_s) return {};
  const auto& asked = worst->asked;
  const auto size = human_bytes(static_cast<std::uint64_t>(asked.bytes));
  Finding finding;
  finding.id = "other-algorithm";
  finding.claim =
      fmt::format("{} of {} ran as {}; by the model {} takes {:.1f} times less.", asked.routine,
                  size, asked.algorithm, worst->best, worst->used_s.value / worst->best_s.value);
  finding.arithmetic = {fmt::format(
      "On {} ranks the model gives {} for {} and {} for {}; {} calls were measured at {} each.",
      asked.ranks, seconds(worst->used_s.value), asked.algorithm, seconds(worst->best_s.value),
      worst->best, asked.calls, seconds(asked.mean_s.value))};
  finding.evidence = {{"used", worst->used_s.value, "s"},
                      {"best", worst->best_s.value, "s"},
                      {"calls", static_cast<double>(asked.calls), ""},
                      {"measured", asked.mean_s.value, "s"}};
  finding.confidence = Confidence::modelled;
  finding.advice = {
      fmt::format("Let the library choose, or ask for {} at this size.", worst->best)};
  finding.benefit = benefit(gain(*worst), gain(*worst) * worst->low, gain(*worst) * worst->high,
                            "the model's two times, for all calls, within its error bar");
  finding.command =
      fmt::format("sinew bench {} --algo {} -p {} -b {} -e {}", name(asked.collective), worst->best,
                  asked.ranks, static_cast<std::uint64_t>(asked.bytes),
                  static_cast<std::uint64_t>(asked.bytes));
  finding.chart = "chart-model";
  finding.cost_s = gain(*worst);
  return finding;
}

std::optional<Finding> rests_on_assumptions(const Summary& summary) {
  std::vector<std::string> what;
  if (summary.times == Source::assumed)
    what.emplace_back("every time: the traces say that theirs were not measured");
  if (summary.link && summary.link->bytes_per_s.source == Source::assumed)
    what.push_back(fmt::format("the link of {} and every share of it", summary.link->about));
  if (summary.compression && summary.compression->density &&
      summary.compression->density->source != Source::measured)
    what.push_back("the realised density, from " + summary.compression->density_from);
  if (what.empty()) return {};
  Finding finding;
  finding.id = "assumption";
  finding.claim = fmt::format(
      "{} in this report {} not measured: {}.",
      what.size() == 1 ? "One kind of figure" : fmt::format("{} kinds of figures", what.size()),
      what.size() == 1 ? "is" : "are", fmt::join(what, "; "));
  for (const auto& one : what) finding.arithmetic.push_back("Assumed: " + one + ".");
  finding.evidence = {{"kinds", static_cast<double>(what.size()), ""}};
  finding.confidence = Confidence::assumed;
  finding.advice = {"Do not quote these as measurements, and do not average them with any."};
  finding.command = "sinew calibrate -o net.toml && sinew report RUN --net net.toml";
  return finding;
}

}  // namespace sinew::report
