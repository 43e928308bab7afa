// Where a profile goes: the formats that `sinew report` and `sinew import` share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "trace/profile.hpp"

namespace sinew {

struct ProfileOutput {
  std::string format = "text";
  std::string folder;  // for the files of a format that has several
  std::string ranks;   // "" : those mpitrace would write
  std::string job = "0";
  std::size_t rows = 12;
  bool json = false;
  std::string title, command;  // of pages: what it is about, and how to make it again
};

void add_output_options(CLI::App& app, ProfileOutput& output);

/// Throws Error{invalid_argument} before anything is printed when the format does not exist.
void write_profile(const trace::Profile& profile, const ProfileOutput& output);

}  // namespace sinew
