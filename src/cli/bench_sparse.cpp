// `sinew bench sparse`: compressed allreduce beside the dense one, ours and a peer's.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include <sinew/compression.hpp>
#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/bench_options.hpp"
#include "cli/bench_report.hpp"
#include "cli/median.hpp"
#include "cli/output.hpp"
#include "cli/sparse_contender.hpp"
#include "cli/sparse_gradient.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "measure/group.hpp"
#include "measure/peers.hpp"
#include "measure/probe.hpp"
#include "measure/result.hpp"

namespace sinew {
namespace {

struct SparseOptions {
  std::string schemes = "oktopk", ranks = "2", against, elements = "27569568",
              non_finite = "propagate";
  std::vector<std::string> parameters;  // name=value
  int rounds = 3, steps = 5;
  bool json = false, no_bind = false;
  BenchSetup setup;
  SparseSetup sparse;
};

std::optional<int> parse_sparse(SparseOptions& o, int argc, char** argv) {
  CLI::App app(
      "Times compressed allreduce steps beside dense ones, on gradients like those of "
      "training.",
      "sinew bench sparse");
  app.add_option("--scheme", o.schemes, "a scheme or several, or all")->capture_default_str();
  app.add_option("--density", o.sparse.options.density,
                 "share of elements that sparse schemes send")
      ->capture_default_str();
  app.add_option("--elements", o.elements, "of the gradient, f32")->capture_default_str();
  app.add_option("-p,--ranks", o.ranks, "rank counts: 4, or 2,4,8")->capture_default_str();
  app.add_option("--transport", o.setup.transport,
                 "shm (processes), local (threads) or tcp (sockets)")
      ->capture_default_str();
  app.add_option("--against", o.against, "peers whose dense Allreduce runs beside: openmpi,mpich");
  app.add_option("--set", o.parameters, "a parameter of the scheme: repartition=64");
  app.add_option("--gradient", o.sparse.gradient,
                 "a real gradient: .npy (f32) or raw f32; ranks and steps vary it by a random "
                 "factor for each element");
  app.add_flag("--accumulated", o.sparse.accumulated,
               "gradients are added where the residual lies, before the step, as training does");
  app.add_option("--non-finite", o.non_finite, "propagate, skip or error")->capture_default_str();
  app.add_option("--rounds", o.rounds, "rounds; every contender has a turn in each")
      ->capture_default_str()
      ->check(between(1, 1000));
  app.add_option("--steps", o.steps, "steps a turn")
      ->capture_default_str()
      ->check(between(1, 1000));
  app.add_flag("--json", o.json, "results as JSON");
  app.add_flag("--no-bind", o.no_bind, "do not bind ranks to cores");
  if (const auto status = parse(app, argc, argv)) return status;
  o.setup.bind = !o.no_bind;
  o.sparse.options.non_finite = parse_non_finite(o.non_finite);
  constexpr std::array<std::string_view, 3> kTransports{"shm", "local", "tcp"};
  if (std::find(kTransports.begin(), kTransports.end(), o.setup.transport) == kTransports.end())
    throw Error(Errc::invalid_argument, unknown("transport", o.setup.transport, kTransports));
  const double density = o.sparse.options.density;
  if (!(density > 0 && density <= 1))
    throw Error(Errc::invalid_argument, fmt::format("--density {} is not in (0, 1]", density));
  for (const auto& text : o.parameters) {
    const auto equals = text.find('=');
    char* end = nullptr;
    const double value =
        equals == std::string::npos ? 0 : std::strtod(text.c_str() + equals + 1, &end);
    if (equals == std::string::npos || end == text.c_str() + equals + 1 || *end != '\0')
      throw Error(Errc::invalid_argument, fmt::format("--set {}: write name=number", text));
    o.sparse.options.parameters[text.substr(0, equals)] = value;
  }
  return {};
}

std::vector<std::string> schemes_of(const SparseOptions& o) {
  std::vector<std::string> names;
  for (const auto word : split(o.schemes, ',')) {
    if (word == "all")
      for (const auto& scheme : schemes()) names.emplace_back(scheme.name);
    else
      names.emplace_back(find_scheme(word).name);
  }
  return names;
}

std::string list_of_far() {
  std::vector<std::string_view> names;
  for (const auto& scheme : schemes())
    if (scheme.far) names.push_back(scheme.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

/// What one contender's calls took.
class SparseTimes {
 public:
  void add_round(const std::vector<double>& samples_us) {
    std::vector<double> round_ms;
    for (const double us : samples_us) round_ms.push_back(us / 1e3);
    if (!round_ms.empty()) unevenness_.push_back(largest(round_ms) / median(round_ms));
    all_ms_.insert(all_ms_.end(), round_ms.begin(), round_ms.end());
  }
  [[nodiscard]] const std::vector<double>& all_ms() const { return all_ms_; }
  [[nodiscard]] double p50_ms() const { return median(all_ms_); }
  [[nodiscard]] double max_ms() const { return largest(all_ms_); }
  /// A round's longest call by its median one: the median over rounds, as one call that the machine
  /// interrupted says nothing about the others.
  [[nodiscard]] double worst_over_median() const { return median(unevenness_); }

 private:
  std::vector<double> all_ms_, unevenness_;
};

struct SparseRow {
  std::string scheme;
  int ranks = 0;
  std::uint64_t elements = 0;
  SparseTimes steps, dense;
  std::map<std::string, SparseTimes> peers;
  std::vector<double> probes_us;
  SparseRemark remark;  // mean over ranks where ranks differ
  std::uint64_t wrong = 0;
};

// All contenders of one rank count and scheme, in turns.
class SparseRun {
 public:
  SparseRun(const SparseOptions& o, std::string scheme, int ranks, std::uint64_t elements) : o_(o) {
    row_.scheme = std::move(scheme);
    row_.ranks = ranks;
    row_.elements = elements;
    auto sparse = o.sparse;
    sparse.scheme = row_.scheme;
    groups_.push_back(start(row_.scheme, sparse_ranks(o.setup, sparse)));
    groups_.push_back(start("dense", sinew_ranks(o.setup)));
    for (const auto peer : split(o.against, ',')) {
      if (peer.empty()) continue;
      const std::string name(peer);
      if (!bench::peer_installed(name, peer_folder())) {
        fmt::print(stderr, "sinew: {} is not installed; going on without it\n", name);
        continue;
      }
      groups_.push_back(start(name, bench::peer(name, peer_folder()).launch));
    }
  }

  SparseRow play() {
    for (int round = 0; round < o_.rounds; ++round) {
      progress_.show(fmt::format("{} on {} ranks, round {} of {}", row_.scheme, row_.ranks,
                                 round + 1, o_.rounds));
      probe();
      for (std::size_t i = 0; i < groups_.size(); ++i)
        take_turn((i + static_cast<std::size_t>(round)) % groups_.size(), round);
      probe();
    }
    progress_.clear();
    collect_remarks();
    return row_;
  }

 private:
  std::unique_ptr<bench::Group> start(const std::string& name, const bench::Launcher& launcher) {
    constexpr double kPatienceS = 60;
    return std::make_unique<bench::Group>(name, row_.ranks, launcher, kPatienceS);
  }

  void probe() {
    if (const auto us = bench::flag_half_round_trip_us()) row_.probes_us.push_back(*us);
  }

  void take_turn(std::size_t which, int round) {
    constexpr double kPatienceS = 300;
    const bool ours = which == 0;
    bench::Command command;
    command.what.bytes = row_.elements * sizeof(float);
    command.what.in_place = true;
    command.what.rewrite = true;
    if (ours) command.what.options = "compressed";
    command.limits = {.budget_s = kPatienceS,
                      .samples = static_cast<std::uint32_t>(o_.steps),
                      .batch = 1,
                      .warm_up = round == 0 ? 2 : 1};
    command.round = round;
    auto& group = *groups_[which];
    group.play(command, 2 * kPatienceS);
    row_.wrong += group.control().wrong();
    auto& into = ours ? row_.steps : which == 1 ? row_.dense : row_.peers[group.name()];
    into.add_round(group.control().samples_us());
  }

  void collect_remarks() {
    auto& all = row_.remark;
    for (int rank = 0; rank < row_.ranks; ++rank) {
      const auto one = parse_remark(groups_[0]->control().message(rank));
      if (rank == 0) {
        all = one;
        continue;
      }
      all.bytes += one.bytes;
      all.conserved &= one.conserved;
      all.residual_over_gradient += one.residual_over_gradient;
      for (std::size_t part = 0; part < kParts; ++part) all.part_ms[part] += one.part_ms[part];
    }
    all.bytes /= row_.ranks;
    all.residual_over_gradient /= row_.ranks;
    for (double& ms : all.part_ms) ms /= row_.ranks;
  }

  const SparseOptions& o_;
  SparseRow row_;
  std::vector<std::unique_ptr<bench::Group>> groups_;  // the scheme, dense, peers
  ProgressLine progress_;
};

nlohmann::ordered_json to_json(const SparseOptions& o, const SparseRow& row) {
  nlohmann::ordered_json json;
  json["scheme"] = row.scheme;
  json["density"] = o.sparse.options.density;
  json["ranks"] = row.ranks;
  json["elements"] = row.elements;
  json["transport"] = o.setup.transport;
  json["accumulated"] = o.sparse.accumulated;
  json["step_ms_p50"] = row.steps.p50_ms();
  json["step_ms_max"] = row.steps.max_ms();
  json["step_worst_over_median"] = row.steps.worst_over_median();
  json["steps_ms"] = row.steps.all_ms();
  json["dense_ms_p50"] = row.dense.p50_ms();
  json["dense_ms_max"] = row.dense.max_ms();
  json["dense_worst_over_median"] = row.dense.worst_over_median();
  json["peers"] = nlohmann::ordered_json::object();
  for (const auto& [peer, times] : row.peers)
    json["peers"][peer] = {{"dense_ms_p50", times.p50_ms()},
                           {"dense_ms_max", times.max_ms()},
                           {"dense_worst_over_median", times.worst_over_median()}};
  json["bytes_per_rank"] = row.remark.bytes;
  json["items_over_k_min"] = row.remark.items_over_k_min;
  json["items_over_k_max"] = row.remark.items_over_k_max;
  json["realised_density"] = row.remark.density;
  json["rel_l2_error"] = row.remark.relative_error;
  json["cosine"] = row.remark.cosine;
  json["residual_over_gradient"] = row.remark.residual_over_gradient;
  if (row.remark.conserves)
    json["conserved"] = row.remark.conserved;
  else
    json["conserved"] = nullptr;  // the scheme does not promise it
  for (std::size_t part = 0; part < kParts; ++part)
    json["split_ms"][std::string(name(static_cast<Part>(part)))] = row.remark.part_ms[part];
  json["probes_us"] = row.probes_us;
  return json;
}

void print_table(const SparseOptions& o, const std::vector<SparseRow>& rows) {
  using enum Align;
  std::vector<Table::Column> columns{{"scheme"},     {"ranks", right},  {"step ms", right},
                                     {"max", right}, {"uneven", right}, {"dense ms", right}};
  std::vector<std::string> peers;
  for (const auto& row : rows)
    for (const auto& [peer, times] : row.peers)
      if (std::find(peers.begin(), peers.end(), peer) == peers.end()) peers.push_back(peer);
  for (const auto& peer : peers) {
    columns.push_back({peer + " ms", right});
    columns.push_back({"/ step", right});
  }
  Table steps(columns),
      worth({{"scheme"},
             {"ranks", right},
             {"MB a rank", right},
             {"items/k", right},
             {"error", right},
             {"cosine", right},
             {"conserved"}}),
      parts({{"scheme"},
             {"ranks", right},
             {"accumulate+select", right},
             {"encode", right},
             {"wire", right},
             {"reduce", right},
             {"decode", right}});
  for (const auto& row : rows) {
    const double step = row.steps.p50_ms();
    std::vector<std::string> cells{row.scheme,
                                   std::to_string(row.ranks),
                                   fmt::format("{:.1f}", step),
                                   fmt::format("{:.1f}", row.steps.max_ms()),
                                   fmt::format("{:.2f}x", row.steps.worst_over_median()),
                                   fmt::format("{:.1f}", row.dense.p50_ms())};
    worth.add({row.scheme, std::to_string(row.ranks), fmt::format("{:.2f}", row.remark.bytes / 1e6),
               row.remark.items_over_k_max == 0
                   ? "-"
                   : fmt::format("{:.2f}-{:.2f}", row.remark.items_over_k_min,
                                 row.remark.items_over_k_max),
               fmt::format("{:.3f}", row.remark.relative_error),
               fmt::format("{:.3f}", row.remark.cosine),
               !row.remark.conserves  ? "-"
               : row.remark.conserved ? "yes"
                                      : "NO"});
    for (const auto& peer : peers) {
      const auto at = row.peers.find(peer);
      const double ms = at == row.peers.end() ? 0 : at->second.p50_ms();
      cells.push_back(ms > 0 ? fmt::format("{:.1f}", ms) : "-");
      cells.push_back(ms > 0 ? fmt::format("{:.2f}x", ms / step) : "-");
    }
    steps.add(cells);
    std::vector<std::string> split{row.scheme, std::to_string(row.ranks)};
    for (const double ms : row.remark.part_ms) split.push_back(fmt::format("{:.2f}", ms));
    parts.add(split);
  }
  fmt::print("# {} elements, density {}, over {}; {} rounds of {} steps, medians\n",
             rows.front().elements, o.sparse.options.density, o.setup.transport, o.rounds, o.steps);
  if (o.sparse.accumulated) fmt::print("# gradients were added to the residual before the step\n");
  fmt::print(
      "# a step, the longest, a round's longest by its median (uneven), and a dense\n"
      "# allreduce of the same gradient\n{}",
      steps.text());
  fmt::print("# what a rank gets, and what it is worth beside the dense result\n{}", worth.text());
  fmt::print("# where a rank's step goes, ms (wire includes waiting for others)\n{}", parts.text());
}

}  // namespace

int run_bench_sparse(int argc, char** argv) {
  SparseOptions o;
  if (const auto status = parse_sparse(o, argc, argv)) return *status;
  const auto names = schemes_of(o);
  const auto ranks = parse_ranks(o.ranks);
  auto elements = parse_bytes(o.elements);  // the same suffixes
  if (!o.sparse.gradient.empty()) elements = read_gradient(o.sparse.gradient).size();
  if (elements == 0) throw Error(Errc::invalid_argument, "--elements 0: nothing to send");
  // What is wrong is said before anything starts.
  if (o.sparse.accumulated && o.sparse.options.non_finite == NonFinite::skip)
    throw Error(Errc::unsupported,
                "--accumulated: what was added to the residual cannot be skipped again; use "
                "--non-finite propagate or error");
  for (const auto& name : names) {
    (void)Parameters(find_scheme(name).parameters, o.sparse.options.parameters);
    if (o.sparse.accumulated && !find_scheme(name).far)
      throw Error(Errc::unsupported,
                  fmt::format("--accumulated: {} takes gradients and residuals apart; {} can", name,
                              list_of_far()));
  }
  std::vector<SparseRow> rows;
  for (const int size : ranks)
    for (const auto& name : names) rows.push_back(SparseRun(o, name, size, elements).play());
  if (o.json) {
    auto results = nlohmann::ordered_json::array();
    for (const auto& row : rows) results.push_back(to_json(o, row));
    const auto command = command_line("sinew bench sparse", argc, argv);
    fmt::print("{}\n", bench_document("sinew-bench-sparse/1", command, std::move(results)).dump(1));
  } else {
    print_table(o, rows);
  }
  const bool wrong = std::any_of(rows.begin(), rows.end(), [](const SparseRow& row) {
    return row.wrong > 0 || (row.remark.conserves && !row.remark.conserved);
  });
  return wrong ? kWrong : kFine;
}

}  // namespace sinew
