// `sinew-train`: one worker, or the one who starts them all.
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "runtime/environment.hpp"
#include "torch/interrupt.hpp"
#include "torch/progress.hpp"
#include "torch/prometheus.hpp"
#include "torch/run_folder.hpp"
#include "torch/summary.hpp"
#include "train/bucket_choice.hpp"
#include "train/group.hpp"
#include "train/server.hpp"
#include "transport/cores.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;
enum Exit : int {
  kFine = 0,
  kFailed = 1,
  kUsage = 2,
  kMissing = 3,
  kWrong = 4,
  kTimeout = 124,
  kInterrupted = 130
};

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
  const int processes = command.workers + (command.serves ? 1 : 0);
  std::vector<std::string> words{sinew.string(), "launch", "-n", std::to_string(processes),
                                 "--no-label"};
  if (command.train.elastic) words.emplace_back("--elastic");
  // After Ctrl-C a step is finished and saved; a second one does not wait for that.
  words.insert(words.end(), {"--grace", "60", "--", self.string()});
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

void tell(const TrainCommand& command, const TrainResult& result) {
  if (command.json)
    fmt::print("{}\n", summary_json(command, result).dump());
  else
    fmt::print("{}", summary_text(command, result));
  if (!command.folder.empty() && !command.json)
    fmt::print("run folder: {}\n", fs::absolute(command.folder).lexically_normal().string());
  if (result.interrupted)
    fmt::print(stderr, "sinew train: interrupted after step {}; --resume goes on from there\n",
               result.steps);
}

// The one who speaks, once all traces are closed.
void leave_behind(const TrainCommand& command, const TrainResult& result, TrainWatcher& watcher) {
  if (!command.prometheus.empty() && !write_prometheus(command.prometheus, prometheus_text(result)))
    watcher.on_warning(fmt::format("cannot write '{}'", command.prometheus));
  if (command.folder.empty()) return;
  try {
    write_result(command, result);
    write_report(command);
  } catch (const std::exception& error) {
    watcher.on_warning(fmt::format("the run's folder is not complete: {}", error.what()));
  }
}

// That all have come here. Who is lost now is missed by nobody.
void meet(Communicator& communicator) {
  try {
    communicator.barrier();
  } catch (const Error&) {
  }
}

// Where this user's caches are, by the usual rules; "" when there is no home.
std::string cache_folder() {
  for (const auto& [name, below] : {std::pair{"XDG_CACHE_HOME", "sinew"}, {"HOME", ".cache/sinew"}})
    if (const char* place = std::getenv(name); place != nullptr && *place == '/')
      return (fs::path(place) / below).string();
  return "";
}

// What `--bucket auto` comes to. A run goes on with the buckets that it began with.
std::uint64_t bucket_bytes(const TrainCommand& command, const Learner& learner,
                           const Environment& environment, int threads,
                           Communicator& communicator) {
  auto saved = kAutoBucket;
  if (command.train.resume) {
    if (communicator.rank() == 0) saved = bucket_bytes_of_checkpoint(command.train.folder);
    communicator.broadcast(std::span(&saved, 1), 0);
  }
  if (saved != kAutoBucket) return saved;
  const int here = environment.local_size > 0 ? environment.local_size : environment.size;
  const bool several_hosts = environment.local_size > 0 && !environment.is_one_host();
  return choose_bucket_bytes(
      {.parameters = learner.parameters(),
       .hides = command.train.overlap && (command.model.device == "cuda" || several_hosts ||
                                          allowed_cores() > here * threads),
       .compressed = command.train.compression.scheme != "dense"},
      communicator);
}

// Tensors of a step are as long as those of the last: memory that goes back to the system between
// two is cleared page by page when it is asked for again. Where so much is refused, all stays as it
// was.
void keep_memory() {
  constexpr int kMost = 1 << 30;
  if (::mallopt(M_MMAP_THRESHOLD, kMost) != 0) ::mallopt(M_TRIM_THRESHOLD, kMost);
}

int work(TrainCommand command, const Environment& environment) {
  keep_memory();
  const int threads = threads_for(command, environment);
  use_threads(threads);
  Options options;
  options.timeout = std::chrono::nanoseconds(static_cast<std::int64_t>(command.timeout_s * 1e9));
  options.transport = command.transport;
  options.trial_calls = 0;  // two runs give the same bits, however fast anything was
  options.warn = [](std::string_view text) { fmt::print(stderr, "sinew train: {}\n", text); };
  auto communicator = connect(options);
  TrainProgress progress(command, communicator.rank(), communicator.size());
  if (communicator.rank() == 0 && !has_fast_blas())
    progress.on_warning(
        "torch found no fast BLAS: apt-get install libopenblas0-pthread makes this twenty times "
        "faster");
  const auto data = open_data(command.train.data,
                              {command.train.seed, cache_folder(), [&](std::string_view text) {
                                 if (command.log != Log::silent) progress.on_warning(text);
                               }});
  check_fits(*command.info, *data.train, command.train.data);
  auto model = command.model;
  model.local_rank = std::max(0, environment.local_rank);
  const auto learner = command.info->make(model);
  if (command.train.bucket_bytes == kAutoBucket)
    command.train.bucket_bytes =
        bucket_bytes(command, *learner, environment, threads, communicator);
  if (communicator.rank() == 0 && !command.folder.empty())
    write_beginning(command, communicator.size(), threads);
  const auto trace = open_trace(command, communicator.rank(), communicator.size(), progress);
  Interrupt interrupt;
  auto wanted = command.train;
  wanted.trace = trace.get();
  // Where there is something to save all ranks end after the same step; elsewhere each leaves.
  if (command.folder.empty())
    progress.each_step = [&] { interrupt.leave_if_asked(); };
  else
    wanted.wants_end = [&] { return interrupt.happened(); };
  const auto result =
      (command.serves ? train_with_server : train)(communicator, *learner, data, wanted, progress);
  if (trace) trace->close();
  meet(communicator);
  if (communicator.rank() == 0) {
    leave_behind(command, result, progress);
    tell(command, result);
    if (std::fflush(stdout) != 0) return kFailed;
  }
  return result.interrupted ? kInterrupted : kFine;
}

int run(int argc, char** argv) {
  const auto command = read_command(argc, argv);
  if (!command) return kFine;
  const auto environment = read_environment(process_environment());
  const int processes = command->workers + (command->serves ? 1 : 0);
  if (environment.launcher.empty() && processes > 1) return start_workers(*command, argc, argv);
  if (command->workers > 0 && processes != environment.size)
    throw Error(Errc::invalid_argument,
                fmt::format("--workers {}, but {} started {}: leave --workers out",
                            command->workers, environment.launcher, environment.size));
  return work(*command, environment);
}

int guarded(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Interrupted&) {
    return kInterrupted;
  } catch (const Error& error) {
    // After Ctrl-C whoever is first to leave is missed by the others, which is no news.
    if (Interrupt::came_from_a_person() && is_loss(error)) return kInterrupted;
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
