#include "cli/bench_rank.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/verbs.hpp"
#include "measure/peers.hpp"
#include "runtime/mpi_plugin.hpp"
#include "transport/cores.hpp"

namespace sinew {

using namespace std::chrono_literals;

bench::Launcher mpi_ranks(const BenchSetup& setup) {
  std::vector<std::string> words;
  for (const auto word : split(mpirun_words(parse_mpi(setup.mpi)), ' ')) words.emplace_back(word);
  words.insert(words.end(), {"{ranks}", std::filesystem::read_symlink("/proc/self/exe").string(),
                             "bench-rank", "{control}", "--mpi", setup.mpi});
  if (!setup.algorithm.empty()) words.insert(words.end(), {"--algo", setup.algorithm});
  if (!setup.schedule.empty())
    words.insert(words.end(), {"--schedule", std::filesystem::absolute(setup.schedule).string()});
  if (!setup.bind) words.emplace_back("--no-bind");
  if (!setup.trace.empty())
    words.insert(words.end(), {"--trace", std::filesystem::absolute(setup.trace).string()});
  if (!setup.net.empty())
    words.insert(words.end(), {"--net", std::filesystem::absolute(setup.net).string()});
  if (setup.trial_calls >= 0)
    words.insert(words.end(), {"--trial", std::to_string(setup.trial_calls)});
  if (setup.chunk_bytes > 0)
    words.insert(words.end(), {"--chunk", std::to_string(setup.chunk_bytes)});
  return bench::spawn_once(std::move(words));
}

std::string mpi_to_start(const std::string& wanted) {
  const auto variables = process_environment();
  std::string missing;
  for (const auto mpi : {Mpi::openmpi, Mpi::mpich}) {
    if (!wanted.empty() && parse_mpi(wanted) != mpi) continue;
    const auto mpirun = std::string(split(mpirun_words(mpi), ' ').front());
    const bool plugged = !mpi_plugin_file(mpi, variables).empty();
    if (plugged && bench::on_path(mpirun)) return std::string(name(mpi));
    missing += fmt::format("; {}: no {}", name(mpi), plugged ? mpirun : "plugin");
  }
  throw Error(Errc::unsupported,
              "no MPI to start ranks with" + missing + " (`sinew doctor` shows what is here)");
}

// The program that mpirun starts for `sinew bench --transport mpi`; not for people.
int run_bench_rank(int argc, char** argv) {
  CLI::App app{"One rank of `sinew bench --transport mpi`, started by it.", "sinew bench-rank"};
  std::string control_path;
  BenchSetup setup;
  app.add_option("control", control_path)->required();
  app.add_option("--mpi", setup.mpi);
  app.add_option("--algo", setup.algorithm);
  app.add_option("--schedule", setup.schedule);
  app.add_option("--trace", setup.trace);
  app.add_option("--net", setup.net);
  app.add_option("--trial", setup.trial_calls);
  app.add_option("--chunk", setup.chunk_bytes);
  bool no_bind = false;
  app.add_flag("--no-bind", no_bind);
  if (const auto status = parse(app, argc, argv)) return *status;
  // Open MPI has given each rank a core already; MPICH gives them all.
  const auto variables = process_environment();
  for (const auto& seat : mpi_seats(variables))
    if (!no_bind && seat.size <= allowed_cores()) bind_to_core(seat.rank);
  auto transport = join_mpi(setup.mpi, variables, Clock::now() + 60s);
  bench::Control control(control_path, transport->rank());
  serve_as_sinew(control, std::move(transport), setup);
  return 0;
}

}  // namespace sinew
