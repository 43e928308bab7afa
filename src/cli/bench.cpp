// `sinew bench`: how long collectives take here, alone or interleaved with installed peers.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/bench_contender.hpp"
#include "cli/bench_hand.hpp"
#include "cli/bench_job.hpp"
#include "cli/bench_rank.hpp"
#include "cli/bench_report.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "measure/peers.hpp"

namespace sinew {
namespace {

struct BenchOptions {
  std::vector<std::string> collectives;
  std::string ranks = "2", sizes, algorithm = "auto", buffers = "private", against, style = "nccl",
              imbalance;
  std::string begin = "8", end = "16M", dtype = "f32", op = "sum", chunk, slot, folder;
  double factor = 4, budget_s = 0.2;
  int rounds = 3, root = 0;
  std::uint32_t samples = 0;
  bool check = true, json = false, percentiles = false, explain = false, rewrite = false,
       apart = false, no_bind = false, no_pull = false, ranks_given = false;
  BenchSetup setup;
};

std::optional<int> parse_bench(BenchOptions& o, int argc, char** argv) {
  CLI::App app(
      "Times collectives. Sizes are bytes of the large buffer, K/M/G binary; GB/s decimal.",
      "sinew bench");
  app.add_option("collective", o.collectives,
                 "allreduce, broadcast, ..., allgatherv, alltoallv, or all")
      ->required();
  app.add_option("-p,--ranks", o.ranks, "rank counts: 4, or 2,4,8, or 2..16")
      ->capture_default_str();
  app.add_option("--algo", o.algorithm, "a name or several (side by side), all, or auto")
      ->capture_default_str();
  app.add_option("--transport", o.setup.transport,
                 "shm (processes), local (threads) or mpi (ranks started by an MPI)")
      ->capture_default_str();
  app.add_option("--mpi", o.setup.mpi, "with --transport mpi: openmpi or mpich");
  app.add_option("--sizes", o.sizes, "exact sizes: 8,4K,1M,110278272");
  app.add_option("-b,--minbytes", o.begin, "smallest size")->capture_default_str();
  app.add_option("-e,--maxbytes", o.end, "largest size")->capture_default_str();
  app.add_option("-f,--stepfactor", o.factor, "next size = this x last")->capture_default_str();
  app.add_option("-n,--iters", o.samples, "samples a round; 0: as many as fit the budget")
      ->capture_default_str();
  app.add_option("-w,--warmup_iters", "accepted; warm-up is a fifth of the budget");
  app.add_option("-c,--check", o.check, "0: do not fail on wrong results")->capture_default_str();
  app.add_option("-d,--datatype", o.dtype, "f32 f64 f16 bf16 i8 u8 i32 i64 u64")
      ->capture_default_str();
  app.add_option("-r,--root", o.root, "for rooted collectives")->capture_default_str();
  app.add_option("--op", o.op, "sum prod min max avg band bor bxor")->capture_default_str();
  app.add_option("--buffers", o.buffers, "private, or shared (alloc_shared)")
      ->capture_default_str();
  app.add_option("--against", o.against, "peers: openmpi,openmpi:nocma,mpich,gloo,hand");
  app.add_option("--rounds", o.rounds, "rounds; every contender has a turn in each")
      ->capture_default_str();
  app.add_option("--budget", o.budget_s, "seconds a turn")->capture_default_str();
  app.add_option("--imbalance", o.imbalance,
                 "alltoallv: zipf:1.2 (popular experts), beside padded alltoall");
  app.add_option("--chunk", o.chunk, "bytes a pipeline segment");
  app.add_option("--slot", o.slot, "bytes of a shared slot (shm)");
  app.add_option("--schedule", o.setup.schedule, "a schedule document to verify and run");
  app.add_option("--style", o.style, "nccl, csv or json")->capture_default_str();
  app.add_option("-o", o.folder, "run folder: bench.json is written there");
  app.add_flag("--json", o.json, "the same as --style json");
  app.add_flag("--percentiles", o.percentiles, "show min and p99 too");
  app.add_flag("--explain", o.explain, "show every candidate algorithm with its estimated cost");
  app.add_flag("--rewrite", o.rewrite, "ranks rewrite their input between samples, untimed");
  app.add_flag("--out-of-place", o.apart, "allreduce into another buffer");
  app.add_flag("--no-pull", o.no_pull, "do not let ranks read each other's memory");
  app.add_flag("--no-bind", o.no_bind, "do not bind ranks to cores");
  const auto status = parse(app, argc, argv);
  o.ranks_given = app.count("-p") > 0;
  return status;
}

std::vector<std::uint64_t> sizes_of(const BenchOptions& o) {
  if (!o.sizes.empty()) return parse_bytes_list(o.sizes);
  std::vector<std::uint64_t> sizes;
  const auto last = parse_bytes(o.end);
  if (o.factor <= 1)
    throw Error(Errc::invalid_argument,
                fmt::format("-f {} does not grow; use 2 or more", o.factor));
  for (auto size = static_cast<double>(parse_bytes(o.begin)); size <= static_cast<double>(last);
       size *= o.factor)
    sizes.push_back(static_cast<std::uint64_t>(size));
  if (sizes.empty())
    throw Error(Errc::invalid_argument, fmt::format("no size between {} and {}", o.begin, o.end));
  return sizes;
}

bench::Collective bench_collective(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto collective : bench::kCollectives) {
    if (bench::name(collective) == text) return collective;
    names.push_back(bench::name(collective));
  }
  throw Error(Errc::invalid_argument, unknown("collective", text, names));
}

// Where the peers' programs are: beside the build's bin, or in the installed libexec.
std::string peer_folder() {
  const auto bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return (bin.parent_path() / "libexec" / "sinew").string();
}

// Token counts of a mixture of experts: rank i sends to expert j in proportion to 1 / (j+1)^s.
std::vector<std::uint64_t> zipf_counts(double exponent, std::uint64_t elements, int ranks) {
  std::vector<double> weights;
  double total = 0;
  for (int j = 0; j < ranks; ++j) total += weights.emplace_back(std::pow(j + 1, -exponent));
  std::vector<std::uint64_t> counts;
  for (int i = 0; i < ranks; ++i)
    for (int j = 0; j < ranks; ++j)
      counts.push_back(static_cast<std::uint64_t>(static_cast<double>(elements) *
                                                  weights[static_cast<std::size_t>(j)] / total));
  return counts;
}

// Uneven parts 1:2:3:1:2:3 ... of the whole, as in a sharded model whose layers differ.
std::vector<std::uint64_t> uneven_counts(std::uint64_t elements, int ranks) {
  std::uint64_t weights = 0;
  for (int rank = 0; rank < ranks; ++rank) weights += static_cast<std::uint64_t>(1 + rank % 3);
  std::vector<std::uint64_t> counts;
  for (int rank = 0; rank < ranks; ++rank)
    counts.push_back(elements * static_cast<std::uint64_t>(1 + rank % 3) / weights);
  return counts;
}

bench::Case make_case(const BenchOptions& o, bench::Collective collective, std::uint64_t bytes,
                      int ranks) {
  const BenchCase mine{parse_dtype(o.dtype), parse_reduce_op(o.op)};
  if (reduces(collective_of(collective)) && !supports(mine.dtype, mine.op))
    throw Error(Errc::unsupported, fmt::format("{} has no {}: bitwise operations need integers",
                                               name(mine.dtype), name(mine.op)));
  bench::Case what;
  what.collective = collective;
  what.element_bytes = static_cast<std::uint32_t>(size_of(mine.dtype));
  what.bytes = bytes / what.element_bytes * what.element_bytes;
  what.root = o.root;
  what.in_place = collective == bench::Collective::allreduce && !o.apart;
  what.rewrite = o.rewrite;
  what.options = to_options(mine);
  const auto elements = what.bytes / what.element_bytes;
  if (collective == bench::Collective::allgatherv) what.counts = uneven_counts(elements, ranks);
  if (collective == bench::Collective::alltoallv) {
    double exponent = 1.2;
    if (!o.imbalance.empty()) {
      if (!o.imbalance.starts_with("zipf:"))
        throw Error(Errc::invalid_argument,
                    fmt::format("--imbalance {}: write zipf:1.2", o.imbalance));
      exponent = std::stod(o.imbalance.substr(5));
    }
    what.counts = zipf_counts(exponent, elements, ranks);
  }
  return what;
}

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
  const auto call = call_for(result.what, result.ranks);
  row.collective = bench::name(result.what.collective);
  row.algorithm = algorithm;
  row.transport = o.setup.transport;
  row.buffers = o.buffers;
  row.ranks = result.ranks;
  row.root = o.root;
  row.bytes = result.what.bytes;
  row.count = result.what.bytes / result.what.element_bytes;
  row.dtype = call.dtype;
  row.op = call.op;
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

void print_explanation(const bench::Case& what, int ranks, std::string_view transport) {
  fmt::print("# {} of {} on {} ranks: estimated cost of each algorithm\n",
             bench::name(what.collective), human_bytes(what.bytes), ranks);
  for (const auto& candidate : candidates(what, ranks, transport))
    if (candidate.refused.empty())
      fmt::print("#   {:<20} {:>12.2f} us\n", candidate.algorithm, candidate.estimated_us);
    else
      fmt::print("#   {:<20} {:>12}    {}\n", candidate.algorithm, "-", candidate.refused);
}

struct Ours {
  std::string contender, algorithm;
};

std::vector<Ours> our_contenders(const BenchOptions& o,
                                 const std::vector<bench::Collective>& collectives) {
  if (!o.setup.schedule.empty()) {
    const auto world = parse_world(read_text(o.setup.schedule));
    return {{"sinew", world.ranks.front().name}};
  }
  if (o.algorithm == "auto") return {{"sinew", ""}};
  std::set<std::string> names;
  for (const auto wanted : split(o.algorithm, ',')) {
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
  std::vector<Ours> result;
  for (const auto& name : names) result.push_back({"sinew:" + name, name});
  return result;
}

BenchSetup setup_of(const BenchOptions& o, const Ours& ours) {
  auto setup = o.setup;
  setup.algorithm = ours.algorithm;
  setup.shared_buffers = o.buffers == "shared";
  setup.bind = !o.no_bind;
  setup.pull = !o.no_pull;
  if (!o.slot.empty()) setup.slot_bytes = parse_bytes(o.slot);
  if (!o.chunk.empty()) setup.chunk_bytes = parse_bytes(o.chunk);
  return setup;
}

struct Run {
  const BenchOptions& o;
  std::vector<bench::Collective> collectives;
  std::vector<std::string> peers;
  BenchStyle style;
  std::vector<BenchRow> rows;
  ProgressLine progress{};
  bool ours_are_several = false;

  void play_all(int ranks) {
    bench::Tournament tournament(ranks);
    const auto ours = our_contenders(o, collectives);
    for (const auto& each : ours)
      if (!tournament.add({each.contender, sinew_ranks(setup_of(o, each))}))
        throw Error(Errc::system, fmt::format("{} ranks did not start: {}", ranks,
                                              tournament.failures().back().story));
    std::vector<std::string> here;
    for (const auto& peer : peers)
      if (tournament.add(peer == "hand" ? bench::ContenderSpec{peer, hand_written_ranks(!o.no_bind)}
                                        : bench::peer(peer, peer_folder())))
        here.push_back(peer);
    for (const auto& failure : tournament.failures())
      fmt::print(stderr, "sinew: {}: {}\n", failure.contender, failure.story);
    play_all(ranks, ours, here, [&](const bench::Case& what, const bench::Limits& limits) {
      return tournament.play(what, o.rounds, limits);
    });
    for (const auto& failure : tournament.failures())
      fmt::print(stderr, "sinew: {} is out: {}\n", failure.contender, failure.story);
  }

  // All processes of an MPI job come here together.
  void play_in_job() {
    BenchJob job(o.setup.mpi, o.chunk.empty() ? 0 : parse_bytes(o.chunk));
    const auto ours = our_contenders(o, collectives);
    for (const auto& each : ours) job.add(each.contender, setup_of(o, each));
    play_all(job.size(), ours, {}, [&](const bench::Case& what, const bench::Limits& limits) {
      return job.play(what, o.rounds, limits);
    });
  }

  using Play = std::function<bench::Result(const bench::Case&, const bench::Limits&)>;

  void play_all(int ranks, const std::vector<Ours>& ours, const std::vector<std::string>& here,
                const Play& player) {
    if (style == BenchStyle::nccl)
      fmt::print("# {} ranks over {}, {} buffers{}, {} rounds, times are medians a call\n", ranks,
                 o.setup.transport, o.buffers, o.apart ? "" : ", in place where possible",
                 o.rounds);
    ours_are_several = ours.size() > 1;
    for (const auto collective : collectives) play(player, collective, ranks, ours, here);
  }

  void play(const Play& player, bench::Collective collective, int ranks,
            const std::vector<Ours>& ours, const std::vector<std::string>& here) {
    if (style == BenchStyle::nccl)
      fmt::print("# {}\n{}", bench::name(collective), bench_head(style, here, o.percentiles));
    auto sizes =
        collective == bench::Collective::barrier ? std::vector<std::uint64_t>{0} : sizes_of(o);
    for (const auto bytes : sizes) {
      const auto what = make_case(o, collective, bytes, ranks);
      progress.show(
          fmt::format("{} {} on {} ranks", bench::name(collective), human_bytes(bytes), ranks));
      bench::Limits limits;
      limits.budget_s = o.budget_s;
      if (o.samples > 0) limits.samples = std::min(o.samples, bench::kMaxSamples);
      const auto result = player(what, limits);
      progress.clear();
      if (o.explain) print_explanation(what, ranks, o.setup.transport);
      for (const auto& [contender, algorithm] : ours)
        add_row(result, what, contender, algorithm, here, ranks);
    }
  }

  void add_row(const bench::Result& result, const bench::Case& what, const std::string& contender,
               const std::string& algorithm, const std::vector<std::string>& here, int ranks) {
    if (!bench::over_rounds(result, contender)) return;
    auto chosen = algorithm;
    if (chosen.empty())
      chosen = o.buffers == "shared" && what.collective == bench::Collective::allreduce
                   ? "shared"
                   : std::string(candidates(what, ranks, o.setup.transport).front().algorithm);
    rows.push_back(make_row(o, result, contender, chosen, here));
    auto line = bench_line(style, rows.back(), here, o.percentiles);
    if (style == BenchStyle::nccl && ours_are_several) line.insert(line.size() - 1, "  " + chosen);
    fmt::print("{}", line);
    std::fflush(stdout);
  }
};

// Under mpirun every process runs this program; what does not make sense there is refused.
void check_job(const BenchOptions& o, const MpiSeat& seat) {
  if (o.setup.transport != "mpi")
    throw Error(
        Errc::invalid_argument,
        fmt::format("mpirun started {} of this program: add --transport mpi to measure over "
                    "MPI, or start it without mpirun",
                    seat.size));
  if (o.ranks_given && parse_ranks(o.ranks) != std::vector<int>{seat.size})
    throw Error(
        Errc::invalid_argument,
        fmt::format("-p {}, but mpirun started {} ranks; leave -p out", o.ranks, seat.size));
  if (!o.against.empty())
    throw Error(Errc::invalid_argument,
                fmt::format("--against needs a program that starts all contenders: leave mpirun "
                            "out, `sinew bench ... --transport mpi --mpi {} -p {} --against {}`",
                            name(seat.mpi), seat.size, o.against));
}

// Ranks other than 0 do the same as rank 0, but what they would say it says already.
bool is_sound_job(const BenchOptions& o, const MpiSeat& seat) {
  try {
    check_job(o, seat);
  } catch (const Error&) {
    if (seat.rank == 0) throw;
    return false;
  }
  if (seat.rank > 0 && std::freopen("/dev/null", "w", stdout) == nullptr)
    throw Error(Errc::system, "cannot open /dev/null");
  return true;
}

}  // namespace

int run_bench(int argc, char** argv) {
  BenchOptions o;
  std::string command = "sinew";
  for (int i = 0; i < argc; ++i) command += fmt::format(" {}", argv[i]);
  if (const auto status = parse_bench(o, argc, argv)) return *status;
  constexpr std::array<std::string_view, 3> kTransports{"shm", "local", "mpi"};
  if (std::find(kTransports.begin(), kTransports.end(), o.setup.transport) == kTransports.end())
    throw Error(Errc::invalid_argument, unknown("transport", o.setup.transport, kTransports));
  const auto seat = bench_seat();
  if (seat && !is_sound_job(o, *seat)) return kUsage;
  if (o.setup.transport == "mpi" && !seat) o.setup.mpi = mpi_to_start(o.setup.mpi);
  if (o.setup.transport == "mpi" && o.buffers == "shared")
    throw Error(Errc::unsupported, "--buffers shared: ranks over mpi share no memory");
  if (o.buffers != "private" && o.buffers != "shared")
    throw Error(Errc::invalid_argument, fmt::format("--buffers {}: private or shared", o.buffers));
  Run run{o, {}, {}, o.json ? BenchStyle::json : parse_bench_style(o.style), {}};
  for (const auto& word : o.collectives) {
    if (word == "all")
      run.collectives.assign(bench::kCollectives.begin(), bench::kCollectives.end());
    else
      run.collectives.push_back(bench_collective(word));
    if (word == "alltoallv")
      run.collectives.push_back(bench::Collective::alltoall);  // padded, beside it
  }
  if (!o.against.empty())
    for (const auto peer : split(o.against, ',')) {
      if (peer == "hand") {
        run.peers.emplace_back(peer);
        continue;
      }
      const auto known = bench::peer_names();
      std::vector<std::string_view> names(known.begin(), known.end());
      if (std::find(names.begin(), names.end(), peer) == names.end())
        throw Error(Errc::invalid_argument, unknown("peer", peer, names));
      if (bench::peer_installed(peer, peer_folder()))
        run.peers.emplace_back(peer);
      else
        fmt::print(stderr, "sinew: {} is not installed; going on without it\n", peer);
    }
  if (run.style == BenchStyle::csv) fmt::print("{}", bench_head(run.style, run.peers, false));
  if (seat)
    run.play_in_job();
  else
    for (const int ranks : parse_ranks(o.ranks)) run.play_all(ranks);
  const auto json = bench_json(run.rows, command);
  if (run.style == BenchStyle::json) fmt::print("{}", json);
  if (!o.folder.empty() && (!seat || seat->rank == 0)) {
    std::filesystem::create_directories(o.folder);
    std::ofstream(std::filesystem::path(o.folder) / "bench.json") << json;
    fmt::print(stderr, "written: {}/bench.json\n", o.folder);
  }
  const bool wrong = std::any_of(run.rows.begin(), run.rows.end(),
                                 [](const BenchRow& row) { return row.wrong > 0; });
  return wrong && o.check ? kWrong : kFine;
}

}  // namespace sinew
