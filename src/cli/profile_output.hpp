// Where a profile goes: the formats that `sinew report` and `sinew import` share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "report/summary.hpp"
#include "report/words.hpp"
#include "trace/profile.hpp"

namespace sinew {

struct ProfileOutput {
  std::string format = "text";
  std::string folder;  // for the files of a format that has several
  std::string ranks;   // "" : those mpitrace would write
  std::string job = "0";
  std::string network, link;  // to set the figures beside: a model, a rate
  bool json = false;
  std::string title, command;  // of pages: what it is about, and how to make it again
};

/// What is written: a run, and perhaps what it is compared with.
struct Report {
  trace::Profile profile;
  report::Summary summary;
  std::vector<report::TextTable> extra{};  // shown after the findings
};

void add_output_options(CLI::App& app, ProfileOutput& output);

/// Throws Error{invalid_argument} for a network or rate that is none.
report::SummaryOptions summary_options(const ProfileOutput& output);

/// Throws Error{invalid_argument} before anything is printed when the format does not exist.
void write_report(const Report& report, const ProfileOutput& output);

}  // namespace sinew
