// `sinew profile`: runs a program with the profiler in its ranks, and shows what they did.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/profile_command.hpp"
#include "cli/profile_folder.hpp"
#include "cli/profile_report.hpp"
#include "cli/verbs.hpp"
#include "trace/writer.hpp"

extern char** environ;

namespace sinew {
namespace {

namespace fs = std::filesystem;

struct ProfileWanted {
  std::string folder;
  std::string budget = "64M";
  std::string labels;
  std::string ranks;
  std::size_t rows = 12;
  bool json = false;
  std::vector<std::string> command;
};

/// Beside the program, as it lies in a build and as it is installed.
std::string profiler_library() {
  const auto here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const auto& folder : {here / ".." / "lib", here / ".." / SINEW_LIBDIR}) {
    const auto path = folder / "libsinew-profile.so";
    std::error_code none;
    if (fs::exists(path, none)) return fs::canonical(path).string();
  }
  throw Error(Errc::unsupported,
              "libsinew-profile.so is not here: build Sinew where Open MPI or MPICH is installed "
              "(apt install libopenmpi-dev or libmpich-dev)");
}

std::string free_folder() {
  for (int i = 1;; ++i) {
    auto name = i == 1 ? std::string("sinew-profile") : fmt::format("sinew-profile-{}", i);
    if (!fs::exists(name)) return name;
  }
}

std::string version_of(const std::string& program) {
  if (program.find_first_of("'\\") != std::string::npos) return "";
  std::FILE* const pipe = ::popen(fmt::format("'{}' --version 2>&1", program).c_str(), "re");
  if (pipe == nullptr) return "";
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), pipe));
  ::pclose(pipe);
  return text;
}

int run_command(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = -1;
  if (const int reason = ::posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
      reason != 0)
    throw Error(Errc::system, fmt::format("cannot start {}: {}", words[0], std::strerror(reason)));
  // Ctrl-C reaches the program too; its traces are still to be read when it has gone.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &ignore, nullptr);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void seal_folder(const std::string& folder) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.path().extension() == ".trace") trace::seal_file(entry.path().string());
}

void print_profile(const trace::Profile& profile, const ProfileWanted& wanted) {
  fmt::print("{}", wanted.json ? profile_json(profile) : profile_text(profile, wanted.rows));
}

int show_verb(int argc, char** argv) {
  CLI::App app{"Shows the profile in a folder, of this run or an earlier one.",
               "sinew profile show"};
  ProfileWanted wanted;
  app.add_option("folder", wanted.folder, "where the traces are")->required();
  app.add_option("--rows", wanted.rows, "how many sizes to list (12)");
  app.add_flag("--json", wanted.json, "everything, as one JSON document");
  if (const auto status = parse(app, argc, argv)) return *status;
  print_profile(trace::summarize(read_folder(wanted.folder)), wanted);
  return kFine;
}

/// Makes the folder; gives back why there is no room in it. "": there is.
std::string make_folder(const std::string& folder) {
  std::error_code failed;
  const bool is_new = fs::create_directories(folder, failed);
  if (failed == std::errc::no_space_on_device || failed.value() == EDQUOT) return failed.message();
  if (failed)
    throw Error(Errc::system, fmt::format("cannot make {}: {}", folder, failed.message()));
  auto reason = trace::why_no_room(folder);
  if (is_new && !reason.empty()) fs::remove(folder, failed);
  return reason;
}

/// The program is not told that its disk is full, so that it goes on as it would without us.
void tell_no_room(const trace::Profile& profile, const std::string& folder) {
  std::string reason;
  std::size_t ranks = 0;
  for (const auto& rank : profile.ranks)
    if (const auto found = rank.info.find("no_room"); found != rank.info.end()) {
      reason = found->second;
      ++ranks;
    }
  if (ranks > 0)
    fmt::print(stderr,
               "sinew profile: no room in {} ({}): the later calls of {} of {} ranks are counted "
               "but have no records\n",
               folder, reason, ranks, profile.ranks.size());
}

/// What fails here is said, and no more: the exit status is the program's.
void show_run(const std::string& folder, const ProfileWanted& wanted) {
  try {
    seal_folder(folder);
    const auto profile = trace::summarize(read_folder(folder));
    tell_no_room(profile, wanted.folder);
    print_profile(profile, wanted);
    if (std::fflush(stdout) != 0)
      throw Error(Errc::system, fmt::format("standard output: {}", std::strerror(errno)));
  } catch (const std::exception& error) {
    fmt::print(stderr, "sinew profile: {}\n", error.what());
  }
}

int profile_verb(ProfileWanted wanted) {
  check_labels(wanted.labels);
  check_rank_list(wanted.ranks);
  if (wanted.folder.empty()) wanted.folder = free_folder();
  const auto budget = parse_bytes(wanted.budget);
  if (const auto reason = make_folder(wanted.folder); !reason.empty()) {
    fmt::print(stderr, "sinew profile: no room in {} ({}): the program runs without the profiler\n",
               wanted.folder, reason);
    return run_command(wanted.command);
  }
  const auto folder = fs::canonical(wanted.folder).string();
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".trace")
      throw Error(Errc::invalid_argument,
                  fmt::format("{} holds the traces of another run; name a new folder with -o",
                              wanted.folder));
  const char* const before = std::getenv("LD_PRELOAD");
  auto preload = profiler_library();
  if (before != nullptr && *before != '\0') preload += fmt::format(":{}", before);
  std::vector<std::pair<std::string, std::string>> variables{
      {"LD_PRELOAD", preload},
      {"SINEW_PROFILE_DIR", folder},
      {"SINEW_PROFILE_BUDGET", fmt::format("{}", budget)}};
  if (!wanted.labels.empty()) variables.emplace_back("SINEW_PROFILE_LABELS", wanted.labels);
  if (!wanted.ranks.empty()) variables.emplace_back("SINEW_PROFILE_RANKS", wanted.ranks);
  const auto& program = wanted.command.front();
  const auto launcher = launcher_of(program, version_of(program));
  const int status = run_command(with_variables(wanted.command, launcher, variables));
  show_run(folder, wanted);
  fmt::print(stderr, "Profile in {}; again: sinew profile show {}\n", wanted.folder, wanted.folder);
  return status;
}

}  // namespace

int run_profile(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "show") return show_verb(argc - 1, argv + 1);
  CLI::App app{
      "Runs an MPI program with the profiler in its ranks: calls, exact bytes and times by "
      "routine, communicator, size and peer. Nothing is rebuilt; the program ends as it would "
      "without, and its exit status is this one's. What a crash leaves is shown as well.",
      "sinew profile"};
  ProfileWanted wanted;
  app.add_option("-o,--output", wanted.folder, "folder for the traces (sinew-profile)");
  app.add_option("--budget", wanted.budget, "bytes of records a rank; past it they are sampled");
  app.add_option("--label", wanted.labels, "roles by tag: tag=1:INDEX,tag=2:VALUE");
  app.add_option("--ranks", wanted.ranks, "only these leave traces: 0,4-7 (all)");
  app.add_option("--rows", wanted.rows, "how many sizes to list (12)");
  app.add_flag("--json", wanted.json, "the profile as one JSON document");
  app.prefix_command();
  app.footer(
      "The command comes last: sinew profile -- mpirun -n 4 ./program -x\n"
      "A profile that exists: sinew profile show FOLDER [--json]");
  if (const auto status = parse(app, argc, argv)) return *status;
  wanted.command = app.remaining();
  if (!wanted.command.empty() && wanted.command.front() == "--")
    wanted.command.erase(wanted.command.begin());
  else if (!wanted.command.empty() && wanted.command.front().starts_with("-"))
    throw_unknown_option(app, wanted.command.front());
  if (wanted.command.empty())
    throw Error(Errc::invalid_argument, "profile what? sinew profile -- mpirun -n 4 ./program");
  return profile_verb(std::move(wanted));
}

}  // namespace sinew
