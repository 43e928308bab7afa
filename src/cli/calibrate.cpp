// `sinew calibrate`: measures this machine and writes the network model that `sinew predict` reads.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/arguments.hpp"
#include "cli/bench_rank.hpp"
#include "cli/calibrate_check.hpp"
#include "cli/calibrate_from.hpp"
#include "cli/calibrate_measure.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "model/network_file.hpp"
#include "transport/board.hpp"
#include "transport/cores.hpp"
#include "transport/local/local.hpp"

namespace sinew {
namespace {

struct CalibrateWanted {
  BenchSetup setup;
  int ranks = 0;
  int rounds = 9;
  std::string most = "4M";
  std::string file = "net.toml", checked;
  bool force = false, json = false;
};

// Sizes of whole collectives, which the fit of the parts does not see; closer to each other where
// transports change how they send.
constexpr std::array kWholeSizes{24.0, 192.0, 768.0, 3e3,   12e3,  36e3,
                                 64e3, 140e3, 260e3, 560e3, 1.1e6, 2.2e6};
constexpr double kMostBusy = 0.3;        // cores that others may use meanwhile
constexpr double kNoisy = 2;             // p90 over p25 of one experiment
constexpr double kMostNoisyShare = 0.2;  // of all experiments

// Messages from 8 bytes on, twice as long each time; where transports change how they send, with
// one in between, so that the change is found where it is.
std::vector<double> message_sizes(double most) {
  std::vector<double> sizes;
  for (double bytes = 8; bytes <= most; bytes *= 2) {
    sizes.push_back(bytes);
    if (bytes >= 8192 && bytes <= 524288 && bytes * 1.5 <= most) sizes.push_back(bytes * 1.5);
  }
  return sizes;
}

void refuse_busy(const CalibrateWanted& wanted) {
  const double busy = busy_cores();
  if (busy <= kMostBusy || wanted.force) return;
  throw Error(
      Errc::system,
      fmt::format("others keep {:.1f} of {} cores busy (load average {:.1f}), so that times "
                  "would be theirs as much as ours; calibrate when the machine is idle, or "
                  "say --force for a model that knows its noise",
                  busy, allowed_cores(), load_average()));
}

double refuse_noise(const std::vector<Timing>& timings, bool force) {
  std::vector<double> noise;
  for (const auto& timing : timings) noise.push_back(timing.noise);
  std::sort(noise.begin(), noise.end());
  const auto noisy = static_cast<double>(
      std::count_if(noise.begin(), noise.end(), [](double each) { return each > kNoisy; }));
  const double share = noisy / static_cast<double>(noise.size());
  if (share > kMostNoisyShare && !force)
    throw Error(Errc::system,
                fmt::format("{:.0f} % of the timings vary by more than {}x (p90 over p25), of "
                            "which at most {:.0f} % may; calibrate when the machine is idle, or "
                            "say --force",
                            share * 100, kNoisy, kMostNoisyShare * 100));
  return noise[noise.size() / 2];
}

void sign(Network& network, const CalibrateWanted& wanted) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  auto& from = network.provenance;
  from.made_by = "sinew calibrate " SINEW_VERSION;
  from.host = host;
  from.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  from.transport = wanted.setup.transport;
  from.cores = allowed_cores();
  from.load = load_average();
  network.name = fmt::format("{} ranks over {}", wanted.ranks, wanted.setup.transport);
}

struct Calibrated {
  Network network, parts;     // the latter without corrections
  std::vector<Timing> whole;  // collectives, by the first set of ranks, then by the next
  double seconds = 0;
};

// Twice as many ranks as cores: what it takes until the next one runs.
double time_switch(const CalibrateWanted& wanted, const Network& network) {
  const int ranks = 2 * allowed_cores();
  std::vector<Experiment> experiments;
  for (const std::string algorithm : {"binomial", "ring", "recursive_doubling", "flat"})
    experiments.push_back({Collective::allreduce, algorithm, 4.0 * ranks});
  Stopwatch stopwatch(wanted.setup, ranks);
  const auto timings = stopwatch.time(experiments, wanted.rounds, [](auto, auto) {});
  return switch_ps(network, ranks, allowed_cores(), timings);
}

Calibrated calibrate(const CalibrateWanted& wanted) {
  refuse_busy(wanted);
  const auto begin = Clock::now();
  ProgressLine progress;
  const auto show = [&](std::string_view what) {
    return [&progress, what = std::string(what)](std::size_t done, std::size_t all) {
      progress.show(fmt::format("{}: {} of {}", what, done, all));
    };
  };
  const auto most = static_cast<double>(parse_bytes(wanted.most));
  const auto sizes = message_sizes(most);
  Measurements measured{.ranks = wanted.ranks, .board = wanted.setup.transport == "shm"};
  if (measured.board) {
    const auto hub = LocalHub::make(wanted.ranks, SegmentOptions{});
    measured.slot_bytes = static_cast<double>(hub->join(0)->board()->slot_bytes());
  }
  progress.show("combining and copying on one core");
  measured.reduce = time_reduce(sizes);
  measured.copy = time_copy(sizes);
  auto in_one_piece = wanted.setup;
  in_one_piece.tcp.slice = 0;
  measured.timings = Stopwatch(in_one_piece, wanted.ranks)
                         .time(instruments(wanted.ranks, measured.board, sizes), wanted.rounds,
                               show("messages by size"));
  Calibrated result;
  for (std::size_t set = 1; set <= kWholeSets; ++set) {
    const auto timings =
        Stopwatch(wanted.setup, wanted.ranks)
            .time(whole_collectives(wanted.ranks, most, kWholeSizes),
                  std::max(3, wanted.rounds / 2),
                  show(fmt::format("whole collectives, {} of {}", set, kWholeSets)));
    result.whole.insert(result.whole.end(), timings.begin(), timings.end());
  }
  auto all = measured.timings;
  all.insert(all.end(), result.whole.begin(), result.whole.end());
  const double noise = refuse_noise(all, wanted.force);
  result.network = derive(measured);
  if (wanted.setup.transport == "tcp") result.network.slice_bytes = TcpOptions::kSliceOnOneHost;
  result.network.provenance.noise = noise;
  const auto ratios = compare(result.network, wanted.ranks, result.whole);
  const auto left_out = left_out_deviations(ratios);
  std::vector<double> of_parts;
  for (const auto& ratio : ratios) of_parts.push_back(ratio.factor);
  result.network.error = error_bar(of_parts);
  result.network.corrected_error = error_bar(left_out);
  result.network.provenance.schedule_error = median_error(left_out);
  sign(result.network, wanted);
  result.network.cores.count = allowed_cores();
  if (wanted.ranks <= allowed_cores()) {
    progress.show("more ranks than cores");
    result.network.cores.switch_ps = time_switch(wanted, result.network);
  }
  result.parts = result.network;
  result.network.corrections = corrections_of(ratios);
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

void print_curve(Table& table, std::string_view part, const Curve& curve) {
  double from = 0;
  for (const auto& segment : curve.segments()) {
    const auto range =
        std::isfinite(segment.most_bytes)
            ? fmt::format("to {}", human_bytes(static_cast<std::uint64_t>(segment.most_bytes)))
        : from > 0 ? "beyond"
                   : "any size";
    table.add({std::string(from > 0 ? "" : part), range,
               human_time_ps(std::round(segment.alpha_ps)),
               segment.byte_ps < 0.01 ? "-" : human_rate(segment.byte_ps)});
    from = segment.most_bytes;
  }
}

void print(const Calibrated& result, const CalibrateWanted& wanted) {
  const auto& network = result.network;
  using enum Align;
  Table table({{"part"}, {"size"}, {"alpha", right}, {"rate", right}});
  print_curve(table, "message one way", network.one_way);
  print_curve(table, "message while receiving", network.exchange);
  print_curve(table, "combining", network.reduce);
  print_curve(table, "copying", network.copy);
  if (network.board) print_curve(table, "through shared memory", network.board->gather);
  if (network.board && !network.board->pull.is_free())
    print_curve(table, "out of another's memory", network.board->pull);
  fmt::print("{}\n", table.text());
  print_ratios(result.parts, std::span(result.whole).first(result.whole.size() / kWholeSets));
  const auto& from = network.provenance;
  fmt::print(
      "Left-out points of a fit: {:.0f} % off (median). Predictions for as many ranks\n"
      "are corrected by such ratios, of all sizes. A collective that is corrected by\n"
      "its other sizes only: {:.0f} % off; 19 of 20 within {:.2f} to {:.2f} of that. Noise\n"
      "(p90 over p25): {:.2f}. A switch between ranks that share a core: {}.\n"
      "Took {:.1f} s. Written: {}\n",
      from.left_out_error * 100, from.schedule_error * 100, network.corrected_error.low,
      network.corrected_error.high, from.noise, human_time_ps(std::round(network.cores.switch_ps)),
      result.seconds, wanted.file);
}

void write(const CalibrateWanted& wanted, const Network& network) {
  std::ofstream file(wanted.file);
  if (!(file << to_toml(network)) || !file.flush())
    throw Error(Errc::system,
                fmt::format("cannot write '{}': {}", wanted.file, std::strerror(errno)));
}

}  // namespace

int run_calibrate(int argc, char** argv) {
  if (calibrates_from(argc, argv)) return run_calibrate_from(argc, argv);
  CLI::App app{
      "Measures what messages, combining and shared memory cost here, checks the model on whole "
      "collectives, and writes it for `sinew predict --net` (docs/predict.md).",
      "sinew calibrate"};
  CalibrateWanted wanted;
  app.add_option("--transport", wanted.setup.transport, "shm (default), tcp or mpi");
  app.add_option("--mpi", wanted.setup.mpi, "openmpi or mpich, where the transport is mpi");
  app.add_option("-p,--ranks", wanted.ranks, "ranks (default: one a core, at most 8)")
      ->check(between(2, 256));
  app.add_option("--rounds", wanted.rounds, "times that everything is measured (default 9)")
      ->check(between(1, 1000));
  app.add_option("--most", wanted.most, "the longest message that is timed (default 4M)");
  app.add_option("-o,--output", wanted.file, "the file to write (default net.toml)");
  app.add_option("--check", wanted.checked,
                 "no new model: time whole collectives and compare with this one");
  app.add_flag("--force", wanted.force, "on a busy or noisy machine, too");
  app.add_flag("--json", wanted.json, "one JSON document about it");
  if (const auto status = parse(app, argc, argv)) return *status;
  constexpr std::array<std::string_view, 3> kTransports{"shm", "tcp", "mpi"};
  if (std::find(kTransports.begin(), kTransports.end(), wanted.setup.transport) ==
      kTransports.end())
    throw Error(Errc::invalid_argument, unknown("transport", wanted.setup.transport, kTransports));
  if (parse_bytes(wanted.most) < 1024 || parse_bytes(wanted.most) > std::uint64_t{1} << 30)
    throw Error(Errc::invalid_argument,
                fmt::format("--most {} is not between 1K and 1G", wanted.most));
  if (wanted.setup.transport == "mpi") wanted.setup.mpi = mpi_to_start(wanted.setup.mpi);
  if (wanted.ranks == 0) wanted.ranks = std::clamp(allowed_cores(), 2, 8);
  if (wanted.ranks > allowed_cores())
    fmt::print(stderr,
               "sinew: {} ranks share {} cores: times hold for {} ranks on such a machine only\n",
               wanted.ranks, allowed_cores(), wanted.ranks);

  if (!wanted.checked.empty()) {
    refuse_busy(wanted);
    return check_model(wanted.checked, wanted.setup, wanted.ranks, wanted.rounds,
                       static_cast<double>(parse_bytes(wanted.most)), wanted.json);
  }
  const auto result = calibrate(wanted);
  write(wanted, result.network);
  if (!wanted.json) {
    print(result, wanted);
    return kFine;
  }
  const auto& from = result.network.provenance;
  const nlohmann::ordered_json document{{"schema", "sinew-calibrate"},
                                        {"version", 1},
                                        {"sinew", SINEW_VERSION},
                                        {"file", wanted.file},
                                        {"transport", from.transport},
                                        {"ranks", from.ranks},
                                        {"noise_factor", from.noise},
                                        {"left_out_error", from.left_out_error},
                                        {"schedule_error", from.schedule_error},
                                        {"low_factor", result.network.corrected_error.low},
                                        {"high_factor", result.network.corrected_error.high},
                                        {"seconds", result.seconds}};
  fmt::print("{}\n", document.dump(1));
  return kFine;
}

}  // namespace sinew
