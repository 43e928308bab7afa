// `sinew-train`: one worker, or the one who starts them all.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "runtime/environment.hpp"
#include "torch/progress.hpp"
#include "torch/summary.hpp"
#include "transport/cores.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;
enum Exit : int { kFine = 0, kFailed = 1, kUsage = 2, kMissing = 3, kWrong = 4, kTimeout = 124 };

int status_of(const Error& error) {
  switch (error.code()) {
    case Errc::invalid_argument:
    case Errc::unsupported:
      return kUsage;
    case Errc::mismatch:
      return kWrong;
    case Errc::timeout:
      return kTimeout;
    default:
      return kFailed;
  }
}

// Replaces this process by `sinew launch`, which starts it again once for each worker.
int start_workers(const TrainCommand& command, int argc, char** argv) {
  const auto self = fs::read_symlink("/proc/self/exe");
  const auto sinew = self.parent_path() / "sinew";
  std::vector<std::string> words{
      sinew.string(), "launch", "-n",         std::to_string(command.workers),
      "--no-label",   "--",     self.string()};
  words.insert(words.end(), argv + 1, argv + argc);
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(sinew.c_str(), arguments.data());
  throw Error(Errc::system, fmt::format("cannot start workers: {} is not there", sinew.string()));
}

int threads_for(const TrainCommand& command, const Environment& environment) {
  if (command.threads > 0) return command.threads;
  const int here = environment.local_size > 0 ? environment.local_size : environment.size;
  return std::max(1, allowed_cores() / std::max(1, here));
}

void write_json(const fs::path& path, const nlohmann::ordered_json& document) {
  std::ofstream file(path);
  file << document.dump(2) << '\n';
  if (!file) throw Error(Errc::system, fmt::format("cannot write '{}'", path.string()));
}

// Where this user's caches are, by the usual rules; "" when there is no home.
std::string cache_folder() {
  for (const auto& [name, below] : {std::pair{"XDG_CACHE_HOME", "sinew"}, {"HOME", ".cache/sinew"}})
    if (const char* place = std::getenv(name); place != nullptr && *place == '/')
      return (fs::path(place) / below).string();
  return "";
}

int work(const TrainCommand& command, const Environment& environment) {
  const int threads = threads_for(command, environment);
  use_threads(threads);
  Options options;
  options.timeout = std::chrono::nanoseconds(static_cast<std::int64_t>(command.timeout_s * 1e9));
  options.transport = command.transport;
  options.warn = [](std::string_view text) { fmt::print(stderr, "sinew train: {}\n", text); };
  auto communicator = connect(options);
  const bool speaks = communicator.rank() == 0;
  TrainProgress progress(command, communicator.rank(), communicator.size());
  if (speaks && !command.folder.empty())
    write_json(fs::path(command.folder) / "run.json",
               resolved_json(command, communicator.size(), threads));
  if (speaks && !has_fast_blas())
    progress.on_warning(
        "torch found no fast BLAS: apt-get install libopenblas0-pthread makes this twenty times "
        "faster");
  const auto data = open_data(command.train.data,
                              {command.train.seed, cache_folder(), [&](std::string_view text) {
                                 if (command.log != Log::silent) progress.on_warning(text);
                               }});
  auto model = command.model;
  model.local_rank = std::max(0, environment.local_rank);
  const auto learner = command.info->make(model);
  const auto result = train(communicator, *learner, data, command.train, progress);
  if (!speaks) return kFine;
  const auto document = summary_json(command, result);
  if (!command.folder.empty()) write_json(fs::path(command.folder) / "result.json", document);
  if (command.json)
    fmt::print("{}\n", document.dump());
  else
    fmt::print("{}", summary_text(command, result));
  if (!command.folder.empty() && !command.json)
    fmt::print("run folder: {}\n", fs::absolute(command.folder).lexically_normal().string());
  return std::fflush(stdout) == 0 ? kFine : kFailed;
}

int run(int argc, char** argv) {
  const auto command = read_command(argc, argv);
  if (!command) return kFine;
  const auto environment = read_environment(process_environment());
  if (environment.launcher.empty() && command->workers > 1)
    return start_workers(*command, argc, argv);
  if (command->workers > 0 && command->workers != environment.size)
    throw Error(Errc::invalid_argument,
                fmt::format("--workers {}, but {} started {}: leave --workers out",
                            command->workers, environment.launcher, environment.size));
  return work(*command, environment);
}

int guarded(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Error& error) {
    fmt::print(stderr, "sinew: {}\n", error.what());
    return status_of(error);
  } catch (const std::exception& error) {
    fmt::print(stderr, "sinew: {}\n", error.what());
    return kFailed;
  }
}

}  // namespace
}  // namespace sinew

int main(int argc, char** argv) { return sinew::guarded(argc, argv); }
