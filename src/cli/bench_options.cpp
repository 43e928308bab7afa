#include "cli/bench_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/bench_job.hpp"
#include "model/network_file.hpp"
#include "runtime/mpi_plugin.hpp"
#include "runtime/trial.hpp"

namespace sinew {
namespace {

bench::Collective bench_collective(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto collective : bench::kCollectives) {
    if (bench::name(collective) == text) return collective;
    names.push_back(bench::name(collective));
  }
  throw Error(Errc::invalid_argument, unknown("collective", text, names));
}

// "zipf:1.2", how much more popular the first expert is than the next.
double zipf_exponent(const std::string& text) {
  constexpr std::string_view kName = "zipf:";
  double exponent = 0;
  const auto* end = text.data() + text.size();
  const bool named = text.starts_with(kName);
  const auto [at, status] =
      std::from_chars(text.data() + (named ? kName.size() : 0), end, exponent);
  if (!named || status != std::errc{} || at != end || !(exponent >= 0 && exponent <= 10))
    throw Error(Errc::invalid_argument,
                fmt::format("--imbalance {}: write zipf:1.2, with an exponent of 0 to 10", text));
  return exponent;
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

void check_mpi(const BenchOptions& o) {
  if (!o.setup.mpi.empty()) parse_mpi(o.setup.mpi);
  if (!o.setup.mpi.empty() && o.setup.transport != "mpi")
    throw Error(Errc::invalid_argument, "--mpi goes with --transport mpi");
  if (o.setup.transport != "mpi") return;
  if (o.buffers == "shared")
    throw Error(Errc::unsupported, "--buffers shared: ranks over mpi share no memory");
  if (!o.emulate.empty())
    throw Error(Errc::unsupported,
                "--emulate delays what ranks of --transport shm, local or tcp "
                "send, not mpi's");
}

void check_words(const BenchOptions& o) {
  constexpr std::array<std::string_view, 4> kTransports{"shm", "local", "tcp", "mpi"};
  constexpr std::array<std::string_view, 2> kBuffers{"private", "shared"};
  const auto expect = [](std::string_view kind, std::string_view word, auto& known) {
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw Error(Errc::invalid_argument, unknown(kind, word, known));
  };
  expect("transport", o.setup.transport, kTransports);
  expect("kind of buffers", o.buffers, kBuffers);
  check_mpi(o);
  parse_dtype(o.dtype);
  parse_reduce_op(o.op);
  zipf_exponent(o.imbalance);
  if (!o.setup.net.empty()) parse_network(read_text(o.setup.net), o.setup.net);
  sizes_of(o);
  sweeps_of(o);
  for (const int ranks : parse_ranks(o.ranks))
    if (o.root < 0 || o.root >= ranks)
      throw Error(Errc::invalid_argument,
                  fmt::format("-r {}: there is no such rank among {}", o.root, ranks));
}

void emulate(BenchOptions& o) {
  auto& emulation = o.setup.emulation = parse_emulation(o.emulate);
  if (!o.ranks_given) o.ranks = std::to_string(emulation.ranks());
  one_size(o.ranks, emulation.node_of);
  if (!o.against.empty())
    throw Error(Errc::invalid_argument,
                "--against with --emulate would compare an emulated network with this machine's");
  if (o.buffers == "shared")
    throw Error(Errc::invalid_argument, "--buffers shared needs one node, not --emulate");
}

}  // namespace

std::optional<int> parse_bench(BenchOptions& o, int argc, char** argv) {
  CLI::App app(
      "Times collectives. Sizes are bytes of the large buffer, K/M/G binary; GB/s decimal.",
      "sinew bench");
  app.add_option("collective", o.collectives,
                 "allreduce, broadcast, ..., allgatherv, alltoallv, or all; `sinew bench sparse "
                 "--help` is about compression")
      ->required();
  const auto* ranks = app.add_option("-p,--ranks", o.ranks, "rank counts: 4, or 2,4,8, or 2..16")
                          ->capture_default_str();
  app.add_option("--algo", o.algorithm, "a name or several (side by side), all, or auto")
      ->capture_default_str();
  app.add_option("--transport", o.setup.transport,
                 "shm (processes), local (threads), tcp (sockets) or mpi (messages of an MPI)")
      ->capture_default_str();
  app.add_option("--mpi", o.setup.mpi, "with --transport mpi: openmpi or mpich");
  app.add_option("--emulate", o.emulate,
                 "a cluster: 2x4,1Gbit,1ms are two nodes of four ranks, the rate of a node's link "
                 "and the latency between nodes");
  app.add_option("--sizes", o.sizes, "exact sizes: 8,4K,1M,110278272");
  app.add_option("-b,--minbytes", o.begin, "smallest size")->capture_default_str();
  app.add_option("-e,--maxbytes", o.end, "largest size")->capture_default_str();
  app.add_option("-f,--stepfactor", o.factor, "next size = this x last")->capture_default_str();
  app.add_option("-n,--iters", o.samples, "samples a round; 0: as many as fit the budget")
      ->capture_default_str();
  app.add_option("-w,--warmup_iters", o.warm_up,
                 "calls before the first sample of a round (default: a tenth of the budget)")
      ->check(between(0, 1'000'000));
  app.add_option("-c,--check", o.check, "0: do not fail on wrong results")->capture_default_str();
  app.add_option("-d,--datatype", o.dtype, "f32 f64 f16 bf16 i8 u8 i32 i64 u64")
      ->capture_default_str();
  app.add_option("-r,--root", o.root, "for rooted collectives")->capture_default_str();
  app.add_option("--op", o.op, "sum prod min max avg band bor bxor")->capture_default_str();
  app.add_option("--buffers", o.buffers, "private, or shared (alloc_shared)")
      ->capture_default_str();
  app.add_option("--against", o.against, "peers: openmpi,openmpi:nocma,mpich,gloo,hand");
  app.add_option("--sweep", o.sweeps,
                 "one table for each: sockbuf=512K,1M, frame=, slice=, streams=, checksum=on,off, "
                 "tls=, congestion=, bind= (tcp), slot=, pull= (shm), chunk=");
  app.add_option("--rounds", o.rounds, "rounds; every contender has a turn in each")
      ->capture_default_str()
      ->check(between(1, 1'000'000));
  app.add_option("--budget", o.budget_s, "seconds a turn")
      ->capture_default_str()
      ->check(between(0.0, 3600.0));
  app.add_option("--imbalance", o.imbalance, "alltoallv: how uneven, zipf:1.2 are popular experts")
      ->capture_default_str();
  app.add_option("--net", o.setup.net,
                 "choose algorithms by this model (`sinew calibrate`) and not by the library's");
  auto* const trial = app.add_option(
      "--trial", o.setup.trial_calls,
      "calls of each size in which the two algorithms predicted fastest take turns; then "
      "the faster stays (--explain shows both); 0: none. Without it: 36, where ranks share "
      "memory and no bit depends on the winner");
  app.add_option("--chunk", o.chunk, "bytes a pipeline segment");
  app.add_option("--slot", o.slot, "bytes of a shared slot (shm)");
  app.add_option("--frame", o.frame, "most bytes of payload in a frame (tcp)");
  app.add_option("--slice", o.slice, "bytes of each chunk that are sent at once, 0: all (tcp)");
  app.add_option("--sockbuf", o.sockbuf, "bytes of kernel buffer a connection (tcp)");
  app.add_option("--streams", o.setup.tcp.streams, "connections that share long transfers (tcp)")
      ->capture_default_str();
  app.add_option("--congestion", o.setup.tcp.congestion, "congestion control by name (tcp)");
  app.add_flag("--no-checksum", o.no_checksum, "do not sum payloads (tcp)");
  app.add_flag("--tls", o.setup.tcp.tls, "seal everything by TLS (tcp)");
  app.add_option("--schedule", o.setup.schedule, "a schedule document to verify and run");
  app.add_option("--style", o.style, "nccl, csv or json")->capture_default_str();
  app.add_option(
      "--trace", o.setup.trace,
      "folder for a trace of each of our ranks, for `sinew report`; recording costs time");
  app.add_option("-o", o.folder, "run folder: bench.json is written there");
  app.add_flag("--json", o.json, "the same as --style json");
  app.add_flag("--percentiles", o.percentiles, "show min and p99 too");
  app.add_flag("--explain", o.explain,
               "show what every candidate algorithm was predicted to take, and what it "
               "took where it took part");
  app.add_flag("--rewrite", o.rewrite, "ranks rewrite their input between samples, untimed");
  app.add_flag("--out-of-place", o.apart, "allreduce into another buffer");
  app.add_flag("--no-pull", o.no_pull, "do not let ranks read each other's memory");
  app.add_flag("--no-bind", o.no_bind, "do not bind ranks to cores");
  const auto status = parse(app, argc, argv);
  if (status) return status;
  o.ranks_given = ranks->count() > 0;
  if (const auto seat = bench_seat(); seat && !o.ranks_given) o.ranks = std::to_string(seat->size);
  if (!o.emulate.empty()) emulate(o);
  check_words(o);
  if (trial->count() > 0) checked_trial_calls(o.setup.trial_calls, "--trial");
  if (!o.setup.trace.empty() && o.setup.transport == "local")
    throw Error(Errc::invalid_argument,
                "--trace needs ranks that are processes: --transport shm, tcp or mpi");
  if (!o.setup.trace.empty() && parse_ranks(o.ranks).size() != 1)
    throw Error(Errc::invalid_argument,
                fmt::format("--trace holds one run: give -p one rank count, not {}", o.ranks));
  return {};
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

std::vector<bench::Collective> collectives_of(const BenchOptions& o) {
  std::vector<bench::Collective> all;
  for (const auto& word : o.collectives) {
    if (word == "all")
      all.assign(bench::kCollectives.begin(), bench::kCollectives.end());
    else
      all.push_back(bench_collective(word));
    if (word == "alltoallv") all.push_back(bench::Collective::alltoall);
  }
  return all;
}

BenchSetup setup_of(const BenchOptions& o) {
  auto setup = o.setup;
  setup.shared_buffers = o.buffers == "shared";
  setup.bind = !o.no_bind;
  setup.pull = !o.no_pull;
  if (!o.slot.empty()) setup.slot_bytes = parse_bytes(o.slot);
  if (!o.chunk.empty()) setup.chunk_bytes = parse_bytes(o.chunk);
  if (!o.frame.empty()) setup.tcp.chunk = parse_bytes(o.frame);
  if (!o.slice.empty()) setup.tcp.slice = parse_bytes(o.slice);
  if (!o.sockbuf.empty()) setup.tcp.sockbuf = parse_bytes(o.sockbuf);
  setup.tcp.checksum = !o.no_checksum;
  return setup;
}

std::vector<Sweep> sweeps_of(const BenchOptions& o) {
  std::vector<Sweep> sweeps;
  for (const auto& text : o.sweeps) sweeps.push_back(parse_sweep(text, o.setup.transport));
  if (!sweeps.empty() && (o.algorithm == "all" || o.algorithm.find(',') != std::string::npos))
    throw Error(Errc::invalid_argument, "--sweep varies one thing: name one algorithm");
  return sweeps;
}

bench::Limits limits_of(const BenchOptions& o) {
  bench::Limits limits;
  limits.budget_s = o.budget_s;
  if (o.samples > 0) limits.samples = std::min(o.samples, bench::kMaxSamples);
  limits.warm_up = o.warm_up;
  return limits;
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
  if (collective == bench::Collective::alltoallv)
    what.counts = zipf_counts(zipf_exponent(o.imbalance), elements, ranks);
  return what;
}

}  // namespace sinew
