#include "torch/run_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "report/report_page.hpp"
#include "torch/summary.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) throw Error(Errc::system, fmt::format("cannot write '{}'", path.string()));
}

std::string trace_name(int rank) { return fmt::format("rank-{}.trace", rank); }

std::vector<trace::Trace> traces_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".trace") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<trace::Trace> traces;
  for (const auto& path : paths) traces.push_back(trace::read_trace_file(path.string()));
  return traces;
}

}  // namespace

std::unique_ptr<TrainTrace> open_trace(const TrainCommand& command, int rank, int size,
                                       TrainWatcher& watcher) {
  if (command.folder.empty() || command.serves) return nullptr;
  try {
    fs::create_directories(command.folder);
    return std::make_unique<TrainTrace>((fs::path(command.folder) / trace_name(rank)).string(),
                                        rank, size, command.line);
  } catch (const std::exception& error) {
    watcher.on_warning(fmt::format("no trace of this run: {}", error.what()));
    return nullptr;
  }
}

void write_beginning(const TrainCommand& command, int workers, int threads) {
  const fs::path folder(command.folder);
  // Those of workers that an earlier run in this folder had, and this one does not.
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    int rank = 0;
    if (std::sscanf(name.c_str(), "rank-%d.trace", &rank) == 1 && rank >= workers)
      old.push_back(entry.path());
  }
  for (const auto& path : old) fs::remove(path);
  write_text(folder / "run.json", resolved_json(command, workers, threads).dump(2) + "\n");
}

void write_result(const TrainCommand& command, const TrainResult& result) {
  const fs::path folder(command.folder);
  auto document = summary_json(command, result);
  document["per_worker"] = workers_json(result);
  write_text(folder / "result.json", document.dump(2) + "\n");
  write_text(folder / "workers.csv", workers_csv(result));
}

void write_report(const TrainCommand& command) {
  const fs::path folder(command.folder);
  auto traces = traces_of(folder);
  if (traces.empty()) return;
  const auto profile = trace::summarize_in_place(traces);
  const auto summary = report::summarize(profile, traces);
  const auto title = fmt::format("{} on {}", command.train.model, command.train.data);
  write_text(folder / "report.html", report::to_html(summary, title, command.line));
  write_text(folder / "report.md", report::to_markdown(summary, title, command.line));
  write_text(folder / "report.json", report::to_json(summary));
}

}  // namespace sinew
