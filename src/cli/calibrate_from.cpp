#include "cli/calibrate_from.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/arguments.hpp"
#include "cli/verbs.hpp"
#include "imports/nccl_tests.hpp"
#include "model/network_file.hpp"
#include "model/ring_fit.hpp"

namespace sinew {

bool calibrates_from(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc,
                     [](std::string_view word) { return word.starts_with("--from"); });
}

int run_calibrate_from(int argc, char** argv) {
  CLI::App app{
      "Fits a network model to what nccl-tests measured (its table or its JSON), as if the "
      "collective had run as a ring, for `sinew predict --net` (docs/predict.md).",
      "sinew calibrate"};
  std::string from, collective, file = "net.toml";
  int ranks = 0;
  bool json = false;
  app.add_option("--from", from, "what nccl-tests printed, or its JSON")->required();
  app.add_option("--collective", collective, "which one, where the file does not tell");
  app.add_option("-p,--ranks", ranks, "how many, where the file does not tell")
      ->check(between(2, 1 << 24));
  app.add_option("-o,--output", file, "the file to write (default net.toml)");
  app.add_flag("--json", json, "one JSON document about it");
  if (const auto status = parse(app, argc, argv)) return *status;

  const auto text = read_text(from);
  const auto times = imports::read_nccl_tests({from, text}, collective);
  if (ranks == 0) ranks = times.ranks;
  std::vector<Sample> samples;
  for (const auto& row : times.rows) samples.push_back({row.bytes, row.us * 1e6});
  auto network = fit_ring(times.collective, ranks, samples);
  network.name = fmt::format("{} of {} ranks, from {}", name(times.collective), ranks, from);
  network.provenance.made_by = fmt::format("sinew {} from nccl-tests", SINEW_VERSION);
  network.provenance.transport = "nccl";
  std::ofstream written(file);
  written << to_toml(network) << std::flush;
  if (!written) throw Error(Errc::system, fmt::format("cannot write '{}'", file));
  if (json) {
    const nlohmann::ordered_json document{{"schema", "sinew-calibrate"},
                                          {"version", 1},
                                          {"sinew", SINEW_VERSION},
                                          {"file", file},
                                          {"collective", name(times.collective)},
                                          {"ranks", ranks},
                                          {"sizes", samples.size()},
                                          {"median_error", network.provenance.schedule_error},
                                          {"left_out_error", network.provenance.left_out_error},
                                          {"low_factor", network.error.low},
                                          {"high_factor", network.error.high}};
    fmt::print("{}\n", document.dump(1));
    return kFine;
  }
  fmt::print("{} of {} ranks, {} sizes: messages as of a ring\n", name(times.collective), ranks,
             samples.size());
  for (const auto& part : network.one_way.segments())
    fmt::print("  {:>10}  {} and {}\n",
               part.most_bytes > 0 && part.most_bytes < 1e18
                   ? fmt::format("to {}", human_bytes(static_cast<std::uint64_t>(part.most_bytes)))
                   : "beyond",
               human_time_ps(part.alpha_ps), human_rate(part.byte_ps));
  fmt::print("median error {:.1f} %, of sizes left out {:.1f} %\nwritten: {}\n",
             network.provenance.schedule_error * 100, network.provenance.left_out_error * 100,
             file);
  return kFine;
}

}  // namespace sinew
