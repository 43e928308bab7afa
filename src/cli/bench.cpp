// `sinew bench`: how long collectives take here, alone or interleaved with installed peers.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <span>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/bench_contender.hpp"
#include "cli/bench_hand.hpp"
#include "cli/bench_job.hpp"
#include "cli/bench_options.hpp"
#include "cli/bench_rank.hpp"
#include "cli/bench_report.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "measure/peers.hpp"

namespace sinew {
namespace {

std::optional<double> median_ratio(const bench::Result& result, std::string_view ours,
                                   const std::vector<std::string>& peers, bool fast) {
  constexpr double kFastUs = 0.1;
  std::vector<double> ratios;
  for (const auto& round : result.rounds) {
    const auto* mine = round.turn(ours);
    if (!round.probe_before_us || round.probed_within(kFastUs) != fast || mine == nullptr ||
        mine->samples_us.empty())
      continue;
    double best = std::numeric_limits<double>::infinity();
    for (const auto& peer : peers)
      if (const auto* turn = round.turn(peer); turn != nullptr && !turn->samples_us.empty())
        best = std::min(best, bench::summarize(turn->samples_us).p50_us);
    if (std::isfinite(best)) ratios.push_back(best / bench::summarize(mine->samples_us).p50_us);
  }
  if (ratios.empty()) return {};
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2),
                   ratios.end());
  return ratios[ratios.size() / 2];
}

BenchRow make_row(const BenchOptions& o, const bench::Result& result, const std::string& contender,
                  const std::string& algorithm, const std::vector<std::string>& peers) {
  BenchRow row;
  const auto mine = from_options(result.what.options);
  row.collective = bench::name(result.what.collective);
  row.algorithm = algorithm;
  row.transport = o.setup.emulation ? "emulated" : o.setup.transport;
  row.emulate = o.emulate;
  row.buffers = o.buffers;
  row.ranks = result.ranks;
  row.root = o.root;
  row.bytes = result.what.bytes;
  row.count = result.what.bytes / result.what.element_bytes;
  row.dtype = mine.dtype;
  row.op = mine.op;
  row.in_place = result.what.in_place;
  if (const auto times = bench::over_rounds(result, contender)) row.ours = *times;
  row.wrong = bench::wrong_elements(result, contender);
  for (const auto& peer : peers)
    if (const auto times = bench::over_rounds(result, peer)) row.peers[peer] = *times;
  for (const auto& round : result.rounds)
    for (const auto& probe : {round.probe_before_us, round.probe_after_us})
      if (probe) row.probes_us.push_back(*probe);
  row.ratio_fast = median_ratio(result, contender, peers, true);
  row.ratio_slow = median_ratio(result, contender, peers, false);
  return row;
}

// Those that were asked for and are installed.
std::vector<std::string> peers_of(const BenchOptions& o) {
  std::vector<std::string> peers;
  if (o.against.empty()) return peers;
  auto known = bench::peer_names();
  known.emplace_back("hand");
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (auto peer : split(o.against, ',')) {
    if (peer == "openmpi" && o.setup.transport == "tcp") peer = "openmpi:tcp";
    if (std::find(names.begin(), names.end(), peer) == names.end())
      throw Error(Errc::invalid_argument, unknown("peer", peer, names));
    if (peer == "hand" || bench::peer_installed(peer, peer_folder()))
      peers.emplace_back(peer);
    else
      fmt::print(stderr, "sinew: {} is not installed; going on without it\n", peer);
  }
  return peers;
}

struct Ours {
  std::string contender, algorithm;
  BenchSetup setup{};
  std::string knob{}, value{};  // what a sweep varies
};

/// What the ranks' own trial found for this case, if it is over.
TrialRemark trial_of(const bench::Result& result, const std::string& contender) {
  const auto* const turn = result.rounds.empty() ? nullptr : result.rounds.back().turn(contender);
  return turn == nullptr ? TrialRemark{} : parse_trial_remark(turn->remark);
}

// "  tried     1.23 us won"
std::string as_tried(const TrialRemark& trial, std::string_view algorithm) {
  for (const auto& side : trial.sides)
    if (side.algorithm == algorithm)
      return fmt::format("  tried {:>9.2f} us{}", side.measured_us,
                         &side == trial.sides.data() ? " won" : "");
  return "";
}

// What was predicted of each algorithm, what those that took part were measured to take, and what
// those took that the ranks tried.
void print_explanation(std::FILE* to, const bench::Result& result, int ranks,
                       const std::vector<Candidate>& candidates, const std::vector<Ours>& ours) {
  const auto& what = result.what;
  fmt::print(to, "# {} of {} on {} ranks: each algorithm as predicted, and measured\n",
             bench::name(what.collective), human_bytes(what.bytes), ranks);
  TrialRemark trial;
  for (const auto& one : ours) {
    if (!one.algorithm.empty()) continue;
    trial = trial_of(result, one.contender);
    if (trial.sides.empty() && one.setup.trial_calls > 0)
      fmt::print(to, "#   nothing to try here: a single algorithm, or parts of different sizes\n");
  }
  for (const auto& candidate : candidates) {
    if (!candidate.refused.empty()) {
      fmt::print(to, "#   {:<20} {:>12}    {}\n", candidate.algorithm, "-", candidate.refused);
      continue;
    }
    const auto tried = as_tried(trial, candidate.algorithm);
    std::string measured(tried.empty() ? 0 : 16, ' ');
    for (const auto& one : ours)
      if (const auto times = bench::over_rounds(result, one.contender);
          times && one.algorithm == candidate.algorithm)
        measured = fmt::format(" {:>12.2f} us", times->p50_us);
    fmt::print(to, "#   {:<20} {:>12.2f} us{}{}\n", candidate.algorithm, candidate.predicted_us,
               measured, tried);
  }
}

// The same ranks once for each value.
std::vector<Ours> swept(const Ours& one, const Sweep& sweep) {
  std::vector<Ours> all;
  for (const auto& value : sweep.values)
    all.push_back({fmt::format("sinew:{}={}", sweep.knob, value), one.algorithm,
                   with_knob(one.setup, sweep.knob, value), sweep.knob, value});
  return all;
}

// How fast `contender` is with `first` as 1: the median over rounds, in which both had a turn.
std::optional<double> speed_beside(const bench::Result& result, const std::string& first,
                                   const std::string& contender) {
  std::vector<double> speeds;
  for (const auto& round : result.rounds) {
    const auto *one = round.turn(first), *other = round.turn(contender);
    if (one == nullptr || other == nullptr || one->samples_us.empty() || other->samples_us.empty())
      continue;
    speeds.push_back(bench::summarize(one->samples_us).p50_us /
                     bench::summarize(other->samples_us).p50_us);
  }
  if (speeds.empty()) return {};
  std::nth_element(speeds.begin(), speeds.begin() + std::ssize(speeds) / 2, speeds.end());
  return speeds[speeds.size() / 2];
}

std::vector<Ours> our_contenders(const BenchOptions& o,
                                 const std::vector<bench::Collective>& collectives) {
  if (!o.setup.schedule.empty()) {
    const auto world = parse_world(read_text(o.setup.schedule));
    return {{"sinew", world.ranks.front().name}};
  }
  std::vector<Ours> result;
  std::set<std::string> names;
  for (const auto wanted : split(o.algorithm, ',')) {
    if (wanted == "auto") {
      result.assign(1, {"sinew", ""});
      continue;
    }
    const auto before = names.size();
    for (const auto collective : collectives)
      for (const auto& algorithm : algorithms()) {
        if (algorithm.collective != collective_of(collective)) continue;
        const bool takes_part = wanted == "all"
                                    ? algorithm.name != "shared" || o.buffers == "shared"
                                    : algorithm.name == wanted;
        if (takes_part) names.insert(std::string(algorithm.name));
      }
    if (names.size() == before)
      find_algorithm(collective_of(collectives.front()), wanted);  // throws, with a suggestion
  }
  for (const auto& name : names) result.push_back({"sinew:" + name, name});
  return result;
}

// The contenders of one rank count, and what becomes of them.
class Run {
 public:
  Run(const BenchOptions& o, BenchStyle style)
      : o_(o), collectives_(collectives_of(o)), peers_(peers_of(o)), style_(style) {
    const auto knob = o.sweeps.empty() ? "" : "knob";  // each line names its own
    if (style_ == BenchStyle::csv)
      fmt::print("{}", BenchTable(style_, {peers_, false, false, knob}, 0).head());
  }

  void play_all(int ranks) {
    const auto sweeps = sweeps_of(o_);
    if (sweeps.empty()) play_all(ranks, {});
    for (const auto& sweep : sweeps) play_all(ranks, sweep);
  }
  /// All processes of an MPI job come here together.
  void play_in_job() {
    const auto ours = contenders({});
    BenchJob job(setup_of(o_));
    for (const auto& one : ours) job.add(one.contender, one.setup);
    play_all(job.size(), ours, {{}, o_.percentiles, ours.size() > 1, ""},
             [&](const bench::Case& what) { return job.play(what, o_.rounds, limits_of(o_)); });
  }
  [[nodiscard]] const std::vector<BenchRow>& rows() const noexcept { return rows_; }

 private:
  using Play = std::function<bench::Result(const bench::Case&)>;

  void play_all(int ranks, const Sweep& sweep) {
    bench::Tournament tournament(ranks);
    const auto ours = contenders(sweep);
    add_ours(tournament, ours, ranks);
    BenchTable::Shown shown{{}, o_.percentiles, ours.size() > 1 && sweep.knob.empty(), sweep.knob};
    for (const auto& peer : peers_)
      if (tournament.add(peer == "hand"
                             ? bench::ContenderSpec{peer, hand_written_ranks(!o_.no_bind)}
                             : bench::peer(peer, peer_folder())))
        shown.peers.push_back(peer);
    const auto absent = tournament.failures().size();
    for (const auto& failure : tournament.failures())
      fmt::print(stderr, "sinew: {}: {}\n", failure.contender, failure.story);
    play_all(ranks, ours, shown, [&](const bench::Case& what) {
      return tournament.play(what, o_.rounds, limits_of(o_));
    });
    for (const auto& failure : std::span(tournament.failures()).subspan(absent))
      fmt::print(stderr, "sinew: {} is out: {}\n", failure.contender, failure.story);
  }

  void play_all(int ranks, const std::vector<Ours>& ours, BenchTable::Shown shown,
                const Play& measure) {
    if (style_ == BenchStyle::nccl)
      fmt::print("# {} ranks over {}, {} buffers{}\n# {} round{}; times are medians a call\n",
                 ranks, o_.setup.transport, o_.buffers, o_.apart ? "" : ", in place where possible",
                 o_.rounds, o_.rounds == 1 ? "" : "s");
    if (style_ == BenchStyle::nccl && o_.setup.emulation)
      fmt::print("# emulated: {} (nodes x ranks, rate of a node's link, latency)\n", o_.emulate);
    if (style_ == BenchStyle::csv) shown.peers = peers_;  // its head has been printed
    const BenchTable table(style_, shown, terminal_columns());
    for (const auto collective : collectives_) play(measure, collective, ranks, ours, table);
  }

  // One for each algorithm, or for each value of the knob that is swept.
  [[nodiscard]] std::vector<Ours> contenders(const Sweep& sweep) const {
    auto ours = our_contenders(o_, collectives_);
    for (auto& one : ours) {
      one.setup = setup_of(o_);
      one.setup.algorithm = one.algorithm;
    }
    return sweep.knob.empty() ? ours : swept(ours.front(), sweep);
  }

  // Algorithms take turns in one set of ranks; what else is swept needs ranks of its own.
  static void add_ours(bench::Tournament& tournament, const std::vector<Ours>& ours, int ranks) {
    for (const auto& one : ours) {
      if (&one != ours.data() && one.knob.empty()) {
        tournament.add_variation(one.contender, ours.front().contender,
                                 [algorithm = one.algorithm](bench::Case& what) {
                                   auto mine = from_options(what.options);
                                   mine.algorithm = algorithm;
                                   what.options = to_options(mine);
                                 });
        continue;
      }
      if (!tournament.add({one.contender, sinew_ranks(one.setup)}))
        throw Error(Errc::system, fmt::format("{} ranks did not start: {}", ranks,
                                              tournament.failures().back().story));
    }
  }

  void play(const Play& measure, bench::Collective collective, int ranks,
            const std::vector<Ours>& ours, const BenchTable& table) {
    if (style_ == BenchStyle::nccl) fmt::print("# {}\n{}", heading(collective), table.head());
    auto sizes =
        collective == bench::Collective::barrier ? std::vector<std::uint64_t>{0} : sizes_of(o_);
    for (const auto bytes : sizes) {
      const auto what = make_case(o_, collective, bytes, ranks);
      progress_.show(
          fmt::format("{} {} on {} ranks", bench::name(collective), human_bytes(bytes), ranks));
      const auto result = measure(what);
      progress_.clear();
      if (o_.explain)
        print_explanation(style_ == BenchStyle::nccl ? stdout : stderr, result, ranks,
                          candidates_for(what, ranks, setup_of(o_)), ours);
      for (const auto& one : ours) {
        if (!add_row(result, one)) continue;
        auto& row = rows_.back();
        row.knob = one.knob;
        row.value = one.value;
        if (!row.knob.empty())
          row.speed = speed_beside(result, ours.front().contender, one.contender);
        show(row, table);
      }
    }
    if (o_.algorithm != "all")
      for (const auto& one : ours)
        say_if_refused(make_case(o_, collective, sizes.front(), ranks), ranks, one);
  }

  // Whoever names an algorithm that cannot do this would see no row, and not know why.
  void say_if_refused(const bench::Case& what, int ranks, const Ours& one) const {
    const auto is_its_row = [&](const BenchRow& row) {
      return row.collective == bench::name(what.collective) && row.ranks == ranks &&
             row.algorithm == one.algorithm;
    };
    const auto seat = bench_seat();  // in an MPI job one speaks for all
    if ((seat && seat->rank != 0) || std::any_of(rows_.begin(), rows_.end(), is_its_row)) return;
    for (const auto& candidate : candidates_for(what, ranks, one.setup))
      if (candidate.algorithm == one.algorithm && !candidate.refused.empty())
        fmt::print(stderr, "sinew: {} {} is left out: it {} ({} ranks over {})\n",
                   bench::name(what.collective), one.algorithm, candidate.refused, ranks,
                   one.setup.transport);
  }

  // "allreduce, f32 sum"
  [[nodiscard]] std::string heading(bench::Collective collective) const {
    std::string text(bench::name(collective));
    const auto kind = collective_of(collective);
    if (kind == Collective::barrier) return text;
    text += fmt::format(", {}", o_.dtype);
    if (reduces(kind)) text += fmt::format(" {}", o_.op);
    if (has_root(kind)) text += fmt::format(", root {}", o_.root);
    return text;
  }

  bool add_row(const bench::Result& result, const Ours& one) {
    if (!bench::over_rounds(result, one.contender)) return false;
    const auto& what = result.what;
    auto chosen = one.algorithm;
    if (const auto trial = trial_of(result, one.contender); chosen.empty() && !trial.sides.empty())
      chosen = trial.sides.front().algorithm;
    if (chosen.empty())
      chosen = o_.buffers == "shared" && what.collective == bench::Collective::allreduce
                   ? "shared"
                   : std::string(candidates_for(what, result.ranks, one.setup).front().algorithm);
    rows_.push_back(make_row(o_, result, one.contender, chosen, peers_));
    rows_.back().automatic = one.algorithm.empty();
    return true;
  }

  void show(const BenchRow& row, const BenchTable& table) const {
    if (style_ == BenchStyle::json) return;
    fmt::print("{}", table.line(row));
    std::fflush(stdout);
  }

  const BenchOptions& o_;
  std::vector<bench::Collective> collectives_;
  std::vector<std::string> peers_;
  BenchStyle style_;
  std::vector<BenchRow> rows_;
  ProgressLine progress_;
};

}  // namespace

std::string peer_folder() {
  const auto bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return (bin.parent_path() / "libexec" / "sinew").string();
}

int run_bench(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "lossless")
    return run_bench_lossless(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "sparse")
    return run_bench_sparse(argc - 1, argv + 1);
  BenchOptions o;
  std::string command = "sinew";
  for (int i = 0; i < argc; ++i) command += fmt::format(" {}", argv[i]);
  if (const auto status = parse_bench(o, argc, argv)) return *status;
  const auto seat = bench_seat();
  if (seat && !sits_down(o, *seat)) return kUsage;
  if (o.setup.transport == "mpi" && !seat) o.setup.mpi = mpi_to_start(o.setup.mpi);
  const auto style = o.json ? BenchStyle::json : parse_bench_style(o.style);
  Run run(o, style);
  if (seat)
    run.play_in_job();
  else
    for (const int ranks : parse_ranks(o.ranks)) run.play_all(ranks);
  const auto json = bench_json(run.rows(), command);
  if (style == BenchStyle::json) fmt::print("{}", json);
  if (!o.folder.empty() && (!seat || seat->rank == 0)) {
    std::filesystem::create_directories(o.folder);
    const auto path = std::filesystem::path(o.folder) / "bench.json";
    std::ofstream file(path);
    if (!(file << json) || !file.flush())
      throw Error(Errc::system,
                  fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
    fmt::print(stderr, "written: {}\n", path.string());
  }
  const bool wrong = std::any_of(run.rows().begin(), run.rows().end(),
                                 [](const BenchRow& row) { return row.wrong > 0; });
  if (wrong && o.check) return kWrong;
  if (!run.rows().empty() || (seat && seat->rank != 0)) return kFine;
  fmt::print(stderr, "sinew: nothing was measured\n");
  return kFailed;
}

}  // namespace sinew
