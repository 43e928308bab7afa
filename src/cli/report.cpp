// `sinew report`: what a run communicated, in the format one wants.
#include <fmt/format.h>

#include "cli/arguments.hpp"
#include "cli/profile_folder.hpp"
#include "cli/profile_output.hpp"
#include "cli/verbs.hpp"
#include "report/timeline.hpp"
#include "trace/profile.hpp"

namespace sinew {

int run_report(int argc, char** argv) {
  CLI::App app{
      "Reports the traces in a folder: tables and what they mean, a page with charts, JSON, the "
      "text layout of mpitrace for scripts that read it, or (--format perfetto) a timeline for "
      "ui.perfetto.dev.",
      "sinew report"};
  std::string folder;
  ProfileOutput output;
  app.add_option("folder", folder, "of a run: what `sinew profile` named")->required();
  add_output_options(app, output);
  if (const auto status = parse(app, argc, argv)) return *status;
  output.title = fmt::format("Communication of {}", folder);
  output.command = command_line("sinew report", argc, argv);
  const auto traces = read_folder(folder);
  if (output.format == "perfetto")
    fmt::print("{}", report::to_perfetto(traces));
  else
    write_profile(trace::summarize(traces), output);
  return kFine;
}

}  // namespace sinew
