// `sinew report`: what a run communicated, in the format one wants; two runs beside each other.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include <sinew/error.hpp>
#include "cli/arguments.hpp"
#include "cli/networks.hpp"
#include "cli/open_page.hpp"
#include "cli/output.hpp"
#include "cli/profile_folder.hpp"
#include "cli/profile_output.hpp"
#include "cli/recorded_run.hpp"
#include "cli/run_sides.hpp"
#include "cli/verbs.hpp"
#include "model/run_answer.hpp"
#include "report/report_page.hpp"
#include "report/stated.hpp"
#include "report/timeline.hpp"

namespace sinew {
namespace {

constexpr int kMostWorkers = 1024;  // that a training run is predicted for, unless asked

/// What a training run would take on more workers. One that cannot be predicted, because it has not
/// ended, has a note instead; what is no training run has neither.
void add_more_workers(report::Summary& summary, const std::string& folder, const Network& network,
                      std::vector<int> workers) {
  if (!is_recorded_run(folder)) return;
  try {
    const auto run = read_recorded_run(folder);
    const int own = static_cast<int>(run.workers);
    if (workers.empty())
      workers = parse_doubling_ranks(fmt::format("{}..{}", own, std::max(own, kMostWorkers)));
    ProgressLine progress;
    summary.more_workers =
        answer_run(run, &network, {.source = folder, .workers = std::move(workers)},
                   [&progress](std::string_view what) { progress.show(what); });
    progress.clear();
  } catch (const Error& error) {
    summary.notes.push_back(
        fmt::format("What this run takes on more workers is not known: {}.", error.what()));
  }
}

/// Repeats have their means; two configurations are set beside each other.
std::vector<report::TextTable> extra_of(const std::vector<RunSide>& sides) {
  std::vector<report::TextTable> tables;
  if (sides.size() > 2)
    throw Error(
        Errc::invalid_argument,
        fmt::format("these are runs of {} configurations; give runs of one or two", sides.size()));
  if (sides.size() == 2) tables.push_back(comparison_table(compare(sides[0].side, sides[1].side)));
  for (const auto& side : sides)
    if (side.side.runs.size() > 1) tables.push_back(repeats_table(side.side));
  return tables;
}

}  // namespace

int run_report(int argc, char** argv) {
  CLI::App app{
      "Reports the traces in a folder: tables and what they mean, a page with charts, JSON, the "
      "text layout of mpitrace for scripts that read it, or (--format perfetto) a timeline for "
      "ui.perfetto.dev. Two folders are before and after; more are repeats, as far as they have "
      "one "
      "configuration.",
      "sinew report"};
  std::vector<std::string> folders;
  ProfileOutput output;
  std::string stated, workers;
  bool open = false;
  app.add_option("folder", folders, "of a run: what `sinew profile` named")->required();
  add_output_options(app, output);
  app.add_option(
      "--stated", stated,
      "figures that somebody wrote down (TOML): checked against each other and this run");
  app.add_option("--workers", workers,
                 "with --net, of a training run: worker counts to predict it for, e.g. 8..4096, "
                 "which doubles (from those of the run to 1024)");
  app.add_flag("--open", open, "write report.html and show it in the browser");
  if (const auto status = parse(app, argc, argv)) return *status;
  output.title = fmt::format("Communication of {}", fmt::join(folders, " and "));
  output.command = command_line("sinew report", argc, argv);
  if (output.format == "perfetto") {
    auto traces = read_folder(folders.back());
    trace::summarize_in_place(traces);
    fmt::print("{}", report::to_perfetto(traces));
    return kFine;
  }
  if (open) {
    output.format = "html";
    if (output.folder.empty()) output.folder = folders.back();
  }
  if (!workers.empty() && output.network.empty())
    throw Error(Errc::invalid_argument, "--workers predicts; say over what network: --net");
  const auto counts = workers.empty() ? std::vector<int>{} : parse_doubling_ranks(workers);
  const auto options = summary_options(output);
  auto sides = read_sides(folders, options);
  auto extra = extra_of(sides);
  auto& shown = sides.back();
  if (options.network)
    add_more_workers(shown.side.runs.back(), shown.last_folder, *options.network, counts);
  if (!stated.empty())
    extra.push_back(report::stated_table(
        report::check_stated(read_text(stated), stated, report::to_json(shown.side.runs.back()))));
  write_report({std::move(shown.last_profile), std::move(shown.side.runs.back()), extra}, output);
  return open ? open_page(output.folder + "/report.html") : kFine;
}

}  // namespace sinew
