// `sinew demo`: two runs of `sinew train`, compared.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "cli/arguments.hpp"
#include "cli/demo_parts.hpp"
#include "cli/demo_report.hpp"
#include "cli/networks.hpp"
#include "cli/verbs.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr int kSteps = 120;  // about 20 s on two cores

/// As one would type it, in lines that fit a terminal; an option stays beside its value.
std::string typed(const Words& words) {
  constexpr std::size_t kColumns = 80;
  std::string text = "$ sinew";
  std::size_t at = text.size();
  for (std::size_t i = 0; i < words.size();) {
    std::string part = " " + words[i++];
    while (part[1] == '-' && i < words.size() && !words[i].starts_with('-'))
      part += " " + words[i++];
    if (at + part.size() + 2 > kColumns) {  // and the backslash
      text += " \\\n   ";
      at = 3;
    }
    text += part;
    at += part.size();
  }
  return text;
}

/// Runs this program once more, its output on stderr; gives its status.
int run_self(const Words& words) {
  fmt::print("{}\n", typed(words));
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) throw Error(Errc::system, "cannot start another process");
  if (child == 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    Words all = words;
    all.insert(all.begin(), "sinew");
    std::vector<char*> argv;
    for (auto& word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv("/proc/self/exe", argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Words training(const std::string& model, int workers, int steps, const fs::path& folder,
               const Words& more) {
  Words words{"train",
              "--model",
              model,
              "-p",
              std::to_string(workers),
              "--steps",
              std::to_string(steps),
              "-o",
              folder.string()};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

nlohmann::json result_of(const fs::path& folder) {
  return nlohmann::json::parse(read_text((folder / "result.json").string()));
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) throw Error(Errc::system, fmt::format("cannot write '{}'", path.string()));
}

bool knows_model(const std::string& name) {
  const auto program = fs::read_symlink("/proc/self/exe").parent_path() / "sinew-train";
  if (!fs::exists(program)) return false;
  const auto pipe = ::popen(fmt::format("'{}' --help", program.string()).c_str(), "r");
  std::string text;
  char part[4096];
  while (pipe != nullptr && std::fgets(part, sizeof part, pipe) != nullptr) text += part;
  if (pipe != nullptr) ::pclose(pipe);
  return text.find("  " + name + " ") != std::string::npos;
}

}  // namespace

int demo_training(const TrainingDemo& wanted) {
  const auto network = load_network(wanted.network);
  const int steps = wanted.steps > 0 ? wanted.steps : kSteps;
  const fs::path folder(wanted.folder);
  const auto warmup = std::to_string(std::max(1, steps / 10));
  const struct {
    const char *title, *folder;
    Words more;
  } runs[] = {{"1. Dense: every gradient travels whole", "dense", {}},
              {"2. Ok-Topk: after a warm-up, two of a hundred elements travel",
               "oktopk",
               {"--compress", "oktopk:0.02", "--warmup", warmup}}};
  for (const auto& run : runs) {
    fmt::print("{}\n\n", run.title);
    auto words = training(wanted.model.empty() ? "cnn" : wanted.model, wanted.workers, steps,
                          folder / run.folder, run.more);
    words.insert(words.end(),
                 {"--data", wanted.data.empty() ? "fashion" : wanted.data, "--batch", "32"});
    if (const int status = run_self(words); status != 0) return status;
    fmt::print("\n");
  }
  const auto comparison =
      compare_runs(result_of(folder / "dense"), result_of(folder / "oktopk"), network);
  fmt::print("3. Side by side\n\n{}", to_text(comparison));
  write(folder / "comparison.html", to_html(comparison));
  write(folder / "comparison.md", to_markdown(comparison));
  fmt::print("\nReport: {}\n",
             fs::absolute(folder / "comparison.html").lexically_normal().string());
  return kFine;
}

int demo_seed_run(const TrainingDemo& wanted) {
  const auto model = wanted.model.empty() ? "lstman4" : wanted.model;
  if (!knows_model(model)) {
    fmt::print(stderr, "sinew: there is no model {} in this build; nothing was run\n", model);
    return kMissing;
  }
  const int steps = wanted.steps > 0 ? wanted.steps : 6;
  const auto folder = fs::path(wanted.folder) / "seed-run";
  const auto warmup = std::to_string(std::max(1, steps / 2));
  // All gradients in one message, as in the run that this repeats.
  auto words =
      training(model, wanted.workers, steps, folder,
               {"--batch", "2", "--threads", "1", "--bucket", "1G", "--compress", "oktopk:0.02",
                "--warmup", warmup, "--clip", "400", "--lr", "0.01", "--no-evaluate"});
  if (!wanted.data.empty()) words.insert(words.end(), {"--data", wanted.data});
  if (const int status = run_self(words); status != 0) return status;
  fmt::print("{}\nReport: {}\n", seed_tables(folder.string()),
             fs::absolute(folder / "report.html").lexically_normal().string());
  return kFine;
}

}  // namespace sinew
