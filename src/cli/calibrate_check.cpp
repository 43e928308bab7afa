#include "cli/calibrate_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/calibrate_measure.hpp"
#include "cli/networks.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "model/predict.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

// Between those that `calibrate` itself checks.
constexpr std::array kSizes{48.0, 1500.0, 24e3, 96e3, 384e3, 1.5e6};

struct Cell {
  const Timing* timing;
  Prediction predicted;
  [[nodiscard]] double predicted_ps() const { return static_cast<double>(predicted.time); }
  [[nodiscard]] bool inside() const {
    return timing->ps >= predicted.low && timing->ps <= predicted.high;
  }
};

std::vector<Cell> cells_of(const Network& network, std::span<const Timing> timings) {
  std::vector<Cell> cells;
  for (const auto& timing : timings) {
    const auto& algorithm = find_algorithm(timing.what.collective, timing.what.algorithm);
    const Question question{.collective = timing.what.collective,
                            .ranks = network.provenance.ranks,
                            .bytes = timing.what.bytes};
    if (fits(algorithm, question, network))
      cells.push_back({&timing, predict(algorithm, question, network)});
  }
  return cells;
}

// The middle one of what each set of ranks took.
std::vector<Timing> middle_of(const std::vector<std::vector<Timing>>& sets) {
  std::vector<Timing> middle;
  for (std::size_t i = 0; i < sets.front().size(); ++i) {
    std::vector<Timing> same;
    for (const auto& set : sets)
      if (i < set.size() && set[i].what == sets.front()[i].what) same.push_back(set[i]);
    std::sort(same.begin(), same.end(),
              [](const Timing& a, const Timing& b) { return a.ps < b.ps; });
    middle.push_back(same[same.size() / 2]);
  }
  return middle;
}

const ErrorBar& error_of(const Network& network) {
  return network.corrections.empty() ? network.error : network.corrected_error;
}

struct Agreement {
  double median = 0, worst = 0, inside = 0;
};

Agreement judge(const std::vector<Cell>& cells) {
  Agreement verdict;
  std::vector<double> errors;
  for (const auto& cell : cells) {
    errors.push_back(std::abs(cell.predicted_ps() / cell.timing->ps - 1));
    verdict.inside += cell.inside() ? 1 : 0;
  }
  if (errors.empty()) return verdict;
  std::sort(errors.begin(), errors.end());
  verdict.median = errors[errors.size() / 2];
  verdict.worst = errors.back();
  verdict.inside /= static_cast<double>(cells.size());
  return verdict;
}

Json to_json(const Network& network, const std::vector<Cell>& cells, const Agreement& verdict) {
  const auto& error = error_of(network);
  Json rows = Json::array();
  for (const auto& cell : cells)
    rows.push_back({{"collective", name(cell.timing->what.collective)},
                    {"algorithm", cell.timing->what.algorithm},
                    {"bytes", cell.timing->what.bytes},
                    {"measured_us", cell.timing->ps / 1e6},
                    {"predicted_us", cell.predicted_ps() / 1e6},
                    {"low_us", cell.predicted.low / 1e6},
                    {"high_us", cell.predicted.high / 1e6},
                    {"noise_factor", cell.timing->noise},
                    {"inside", cell.inside()}});
  return {{"schema", "sinew-calibrate-check"},
          {"version", 1},
          {"sinew", SINEW_VERSION},
          {"transport", network.provenance.transport},
          {"ranks", network.provenance.ranks},
          {"calibrated", network.provenance.date},
          {"low_factor", error.low},
          {"high_factor", error.high},
          {"median_error", verdict.median},
          {"largest_error", verdict.worst},
          {"inside_share", verdict.inside},
          {"cells", std::move(rows)}};
}

}  // namespace

std::vector<Experiment> whole_collectives(int ranks, double most, std::span<const double> sizes) {
  std::vector<Experiment> all;
  for (const auto collective : {Collective::allreduce, Collective::allgather,
                                Collective::reduce_scatter, Collective::alltoall})
    for (const auto* algorithm : algorithms_of(collective))
      for (const double bytes : sizes) {
        if (bytes > most) continue;
        const double part = 4.0 * ranks;  // an element of each rank
        all.push_back({collective, std::string(algorithm->name),
                       std::max(1.0, std::floor(bytes / part)) * part});
      }
  return all;
}

void print_ratios(const Network& network, std::span<const Timing> timings) {
  std::vector<double> sizes;
  std::map<std::string, std::vector<std::string>> rows;
  std::vector<std::string> order;
  for (const auto& timing : timings) {
    const auto ratios = compare(network, network.provenance.ranks, std::span(&timing, 1));
    if (ratios.empty()) continue;
    const auto label = fmt::format("{} {}", name(timing.what.collective), timing.what.algorithm);
    if (!rows.contains(label)) order.push_back(label);
    rows[label].push_back(fmt::format("{:.2f}", ratios.front().factor));
    if (std::find(sizes.begin(), sizes.end(), timing.what.bytes) == sizes.end())
      sizes.push_back(timing.what.bytes);
  }
  std::vector<Table::Column> columns{{"measured over predicted"}};
  constexpr std::size_t kMostColumns = 6;  // of 80 characters
  const auto each = (sizes.size() + kMostColumns - 1) / kMostColumns;
  for (std::size_t i = 0; i < sizes.size(); i += each)
    columns.push_back({human_bytes(static_cast<std::uint64_t>(sizes[i])), Align::right});
  Table table(std::move(columns));
  for (const auto& label : order) {
    std::vector<std::string> cells{label};
    for (std::size_t i = 0; i < rows[label].size(); i += each) cells.push_back(rows[label][i]);
    table.add(std::move(cells));
  }
  fmt::print("{}\n", table.text());
}

int check_model(const std::string& file, const BenchSetup& setup, int ranks, int rounds,
                double most, bool json) {
  const auto network = load_network(file);
  const auto& from = network.provenance;
  if (from.transport != setup.transport || from.ranks != ranks)
    throw Error(Errc::invalid_argument,
                fmt::format("{}: this model is of {} ranks over {}; check it with -p {} "
                            "--transport {}",
                            from.where.empty() ? file : from.where, from.ranks,
                            from.transport.empty() ? "nothing measured" : from.transport,
                            from.ranks, from.transport));
  ProgressLine progress;
  std::vector<std::vector<Timing>> sets;
  for (std::size_t set = 1; set <= kWholeSets; ++set)
    sets.push_back(Stopwatch(setup, ranks)
                       .time(whole_collectives(ranks, most, kSizes), rounds,
                             [&](std::size_t done, std::size_t all) {
                               progress.show(fmt::format("whole collectives, {} of {}: {} of {}",
                                                         set, kWholeSets, done, all));
                             }));
  progress.clear();
  const auto timings = middle_of(sets);
  const auto cells = cells_of(network, timings);
  const auto verdict = judge(cells);
  if (json) {
    fmt::print("{}\n", to_json(network, cells, verdict).dump(1));
    return kFine;
  }
  print_ratios(network, timings);
  const auto& error = error_of(network);
  fmt::print(
      "{} cells: {:.0f} % off in the median, {:.0f} % at most; {:.0f} % of them within the\n"
      "error bar of {:.2f} to {:.2f} times the prediction.\n",
      cells.size(), verdict.median * 100, verdict.worst * 100, verdict.inside * 100, error.low,
      error.high);
  return kFine;
}

}  // namespace sinew
