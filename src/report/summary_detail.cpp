#include "report/summary_detail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <sinew/trace.hpp>
#include "report/wire.hpp"
#include "trace/arrivals.hpp"

namespace sinew::report {
namespace {

using trace::NoteKind;
using trace::Profile;
using trace::Trace;

std::string text_in(const Profile& profile, const std::string& key) {
  if (profile.ranks.empty()) return "";
  const auto& info = profile.ranks.front().info;
  const auto found = info.find(key);
  return found == info.end() ? "" : found->second;
}

std::optional<double> number_in(const Profile& profile, const std::string& key) {
  if (profile.ranks.empty()) return {};
  return trace::info_number(profile.ranks.front(), key);
}

/// The mean over ranks, of those that told it.
std::optional<double> mean_in(const Profile& profile, const std::string& key) {
  double sum = 0;
  int told = 0;
  for (const auto& rank : profile.ranks)
    if (const auto value = trace::info_number(rank, key)) {
      sum += *value;
      ++told;
    }
  if (told == 0) return {};
  return sum / told;
}

std::vector<AlgorithmRow> algorithms_of(std::span<const Trace> traces) {
  std::map<std::tuple<std::string, std::uint64_t, std::string>, AlgorithmRow> rows;
  for (const auto& trace : traces)
    for (const auto& counter : trace.counters) {
      const auto& key = counter.key;
      const auto note = trace.notes.find({NoteKind::algorithm, key.algorithm});
      if (key.kind != static_cast<std::uint8_t>(EventKind::collective) || counter.calls == 0 ||
          note == trace.notes.end())
        continue;
      const auto routine = trace::routine_name(trace, key);
      const auto from = std::bit_floor(key.bytes);
      auto& row = rows[{routine, from, note->second}];
      row.routine = routine;
      row.from_bytes = from;
      row.algorithm = note->second;
      row.calls += counter.calls;
      row.seconds += counter.total_ns * 1e-9;
    }
  std::vector<AlgorithmRow> result;
  for (const auto& [key, row] : rows) result.push_back(row);
  return result;
}

/// Whole gradients, by the trace's own word or the largest allreduce of a phase that is dense.
double dense_bytes_of(const Profile& profile) {
  if (const auto told = number_in(profile, "dense_bytes")) return *told;
  return 0;
}

double largest_allreduce(const Summary& summary) {
  double most = 0;
  for (const auto& routine : summary.routines)
    if (collective_of(routine.routine) == Collective::allreduce)
      most = std::max(most, static_cast<double>(routine.spread.most));
  return most;
}

/// Items that an allgather brings to everybody: an index and a value of four bytes each.
std::optional<Figure> implied_density(const Summary& summary, const StepPhase& sparse,
                                      double dense_bytes) {
  constexpr double kItemBytes = 8, kValueBytes = 4;
  double gathered = 0;
  for (const auto& routine : summary.routines)
    if (collective_of(routine.routine) == Collective::allgather && routine.spread.mean > 1024) {
      double moved = 0;
      for (const auto& row : routine.sizes) moved += static_cast<double>(row.moved);
      gathered += moved;
    }
  if (gathered <= 0 || dense_bytes <= 0 || sparse.iterations == 0) return {};
  const auto items = gathered / kItemBytes / static_cast<double>(sparse.iterations);
  return Figure(Modelled{items / (dense_bytes / kValueBytes)});
}

std::optional<Compression> compression_of(const Summary& summary, const Profile& profile) {
  const auto* const dense = phase_named(summary.steps, "dense");
  const auto* const sparse = phase_named(summary.steps, "sparse");
  if (sparse == nullptr) return {};
  Compression result;
  result.scheme = text_in(profile, "scheme");
  result.dense_bytes = dense_bytes_of(profile);
  if (result.dense_bytes <= 0 && dense != nullptr) result.dense_bytes = largest_allreduce(summary);
  if (result.dense_bytes <= 0) return {};
  const auto ranks = static_cast<int>(summary.ranks.size());
  result.dense_wire =
      dense != nullptr
          ? Modelled{dense->wire_bytes}
          : wire_bytes("allreduce", static_cast<std::uint64_t>(result.dense_bytes), 0, ranks);
  result.sparse_wire = {sparse->wire_bytes};
  const bool measured = summary.times == Source::measured;
  if (dense != nullptr && measured) {
    result.dense_step_s = Measured{dense->split.elapsed_s};
    result.dense_exposed_s = Measured{dense->split.exposed_s()};
  }
  if (measured) {
    result.sparse_step_s = Measured{sparse->split.elapsed_s};
    result.sparse_exposed_s = Measured{sparse->split.exposed_s()};
    if (sparse->split.compress_s > 0) result.compress_s = Measured{sparse->split.compress_s};
  }
  if (const auto target = number_in(profile, "density")) result.target_density = Assumed{*target};
  if (const auto told = mean_in(profile, "realised_density")) {
    result.density = Figure(Measured{*told});
    result.density_from = "told by the ranks";
  } else if (const auto implied = implied_density(summary, *sparse, result.dense_bytes)) {
    result.density = implied;
    result.density_from = "what is gathered, at 8 bytes an item";
  }
  if (const auto error = mean_in(profile, "relative_error"))
    result.relative_error = Measured{*error};
  return result;
}

std::vector<StripCell> strip_of(const Steps& steps) {
  constexpr std::size_t kMost = 200;
  const auto group = (steps.iterations.size() + kMost - 1) / kMost;
  std::vector<StripCell> strip;
  for (const auto& one : steps.iterations) {
    if (strip.empty() || strip.back().count == group || strip.back().phase != one.phase) {
      strip.emplace_back();
      strip.back().number = one.number;
      strip.back().phase = one.phase;
    }
    auto& cell = strip.back();
    cell.last = one.number;
    ++cell.count;
    cell.split.add(one.split);
    cell.wire_bytes += one.wire_bytes;
  }
  for (auto& cell : strip) {
    const auto sum = std::exchange(cell.split, {});
    cell.split.add(sum, 1 / static_cast<double>(cell.count));
    cell.wire_bytes /= static_cast<double>(cell.count);
  }
  return strip;
}

void add_last(Summary& summary, std::span<const Trace> traces) {
  Imbalance imbalance;
  for (std::size_t i = 0; i < traces.size() && i < summary.ranks.size(); ++i) {
    std::vector<bool> all_need_all;
    for (const auto& counter : traces[i].counters) {
      const auto kind = collective_of(trace::routine_name(traces[i], counter.key));
      all_need_all.push_back(kind == Collective::allreduce || kind == Collective::allgather ||
                             kind == Collective::alltoall || kind == Collective::reduce_scatter ||
                             kind == Collective::barrier);
    }
    std::uint64_t compared = 0;
    for (const auto& call : traces[i].records) {
      if (call.waited_ns < 0 || !all_need_all[call.counter]) continue;
      ++compared;
      if (call.waited_ns == 0) ++summary.ranks[i].last;
    }
    imbalance.compared = std::max(imbalance.compared, compared);
  }
  for (const auto& rank : summary.ranks) {
    if (rank.last > imbalance.last) {
      imbalance.last = rank.last;
      imbalance.last_rank = rank.rank;
    }
    const auto busy = rank.split ? rank.split->elapsed_s - rank.split->exposed_s() : rank.other_s();
    imbalance.mean_busy_s += busy / static_cast<double>(summary.ranks.size());
    if (busy > imbalance.most_busy_s) {
      imbalance.most_busy_s = busy;
      imbalance.busiest = rank.rank;
    }
  }
  if (summary.ranks.size() > 1) summary.imbalance = imbalance;
}

void add_environment(Summary& summary, const Profile& profile) {
  // What it ran on; never the whole environment, which may hold secrets.
  for (const auto* const key :
       {"producer", "host", "cores", "mpi", "transport", "scheme", "density", "model", "batch",
        "learning_rate", "seed", "sinew", "clocksource", "user_s", "system_s", "resident_kib"})
    if (auto value = text_in(profile, key); !value.empty())
      summary.environment.emplace_back(key, std::move(value));
}

std::string rate_text(double bytes_per_s) { return fmt::format("{:.3g} GB/s", bytes_per_s / 1e9); }

std::optional<Link> link_of(const SummaryOptions& options) {
  if (options.link_bytes_per_s)
    return Link{Figure(Assumed{*options.link_bytes_per_s}),
                rate_text(*options.link_bytes_per_s) + ", as stated"};
  if (!options.network || options.network->one_way.segments().empty()) return {};
  const auto& network = *options.network;
  const auto rate = 1e12 / network.one_way.segments().back().byte_ps;
  if (network.provenance.ranks > 0)
    return Link{Figure(Modelled{rate}),
                fmt::format("{}, calibrated ({})", rate_text(rate), network.name)};
  return Link{Figure(Assumed{rate}), rate_text(rate) + ", as stated"};
}

void add_bandwidth(Summary& summary) {
  constexpr std::uint64_t kLeast = 1U << 16U;  // below, latency is what counts
  const auto ranks = static_cast<int>(summary.ranks.size());
  for (const auto& routine : summary.routines) {
    if (is_receive(routine.routine) || only_posts(routine.routine)) continue;
    for (auto bin = routine.bins.rbegin(); bin != routine.bins.rend(); ++bin) {
      const auto moving = bin->seconds - bin->waited_s;
      if (bin->bytes < kLeast || moving <= 0 || bin->calls == 0) continue;
      const auto wire =
          wire_bytes(routine.routine, bin->moved / bin->calls, bin->sent / bin->calls, ranks).value;
      if (wire <= 0) continue;
      const auto rate = wire * static_cast<double>(bin->calls) / moving;
      BandwidthRow row{routine.name, bin->bytes, bin->calls, Figure(Modelled{rate}), {}};
      // Messages are counted as they are; a collective's share of them is a model's.
      if (!collective_of(routine.routine)) row.bytes_per_s = Figure(Measured{rate});
      if (summary.times == Source::assumed) row.bytes_per_s = Figure(Assumed{rate});
      if (summary.link) row.share_of_link = rate / summary.link->bytes_per_s.value;
      summary.bandwidth.push_back(row);
    }
  }
}

/// The classes of calls that took longest and that a model knows.
std::vector<ModelQuestion> questions_of(const Summary& summary) {
  constexpr std::size_t kMost = 6;
  const auto ranks = static_cast<int>(summary.ranks.size());
  std::vector<ModelQuestion> questions;
  for (const auto& routine : summary.routines) {
    const auto kind = collective_of(routine.routine);
    if (!kind || *kind == Collective::barrier || ranks < 2 || only_posts(routine.routine)) continue;
    const bool part = routine.routine.starts_with("MPI_") &&
                      (*kind == Collective::allgather || *kind == Collective::alltoall);
    for (const auto& bin : routine.bins) {
      if (bin.calls == 0 || bin.moved == 0) continue;
      const auto mean = static_cast<double>(bin.moved) / static_cast<double>(bin.calls);
      ModelQuestion question{routine.name,
                             *kind,
                             part ? mean * ranks : mean,
                             ranks,
                             bin.calls / static_cast<std::uint64_t>(ranks),
                             {(bin.seconds - bin.waited_s) / static_cast<double>(bin.calls)},
                             ""};
      std::uint64_t most = 0;
      for (const auto& row : summary.algorithms)
        if (row.routine == routine.routine && row.from_bytes == bin.bytes && row.calls > most) {
          most = row.calls;
          question.algorithm = row.algorithm;
        }
      questions.push_back(std::move(question));
    }
  }
  std::stable_sort(questions.begin(), questions.end(), [](const auto& a, const auto& b) {
    return a.mean_s.value * static_cast<double>(a.calls) >
           b.mean_s.value * static_cast<double>(b.calls);
  });
  if (questions.size() > kMost) questions.resize(kMost);
  return questions;
}

}  // namespace

void add_detail(Summary& summary, const Profile& profile, std::span<const Trace> traces) {
  if (text_in(profile, "times") == "assumed") {
    summary.times = Source::assumed;
    summary.notes.emplace_back(
        "the times in these traces are assumptions: whoever made the traces made them up");
  }
  std::vector<int> ranks;
  for (const auto& rank : profile.ranks) ranks.push_back(rank.rank);
  const auto times = rank_times(traces);
  std::size_t split = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    summary.names_compute |= times[i].names_compute;
    summary.names_data |= times[i].names_data;
    if (!times[i].every_record) continue;
    const auto whole = splits_of(times[i], std::span(&times[i].whole, 1));
    summary.ranks[i].split = whole.front();
    ++split;
  }
  for (const auto& rank : summary.ranks)
    if (rank.split) summary.split.add(*rank.split, 1 / static_cast<double>(split));
  if (split < times.size())
    summary.notes.push_back(fmt::format(
        "{} of {} ranks kept no record of every call, so that their time is split by sums only",
        times.size() - split, times.size()));
  summary.steps = find_steps(traces, profile, times, dense_bytes_of(profile));
  summary.strip = strip_of(summary.steps);
  summary.lanes = lanes_of(times, ranks);
  summary.heat = heat_of(times, ranks);
  summary.algorithms = algorithms_of(traces);
  add_last(summary, traces);
  summary.compression = compression_of(summary, profile);
  if (summary.compression)
    for (auto& routine : summary.routines)
      if (!routine.sizes.empty() && routine.spread.least > 0)
        routine.reduction = {
            summary.compression->dense_bytes / static_cast<double>(routine.spread.most),
            summary.compression->dense_bytes / static_cast<double>(routine.spread.least)};
  if (const auto cores = number_in(profile, "cores"); cores && *cores >= 1)
    summary.cores = static_cast<int>(*cores);
  add_environment(summary, profile);
}

void add_link(Summary& summary, const SummaryOptions& options) {
  summary.link = link_of(options);
  add_bandwidth(summary);
  double wire = 0;
  for (const auto& routine : summary.routines) wire += routine.wire_bytes;
  if (summary.link && summary.elapsed_s > 0 && !summary.ranks.empty())
    summary.link_use = Figure(Modelled{wire / static_cast<double>(summary.ranks.size()) /
                                       summary.elapsed_s / summary.link->bytes_per_s.value});
  if (options.network) summary.model = view_model(*options.network, questions_of(summary));
}

}  // namespace sinew::report
