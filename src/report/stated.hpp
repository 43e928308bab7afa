// Figures that somebody wrote down, checked against each other and against a run: what a report put
// together by hand must get past. docs/seeds.md has examples of every kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/words.hpp"

namespace sinew::report {

struct Objection {
  std::string name;  // of the statement, or its place
  std::uint32_t line = 0;
  std::string what;  // "1024 x 110.278 is 112925, not 110280"
};

struct Checked {
  std::vector<std::string> held;  // names of the statements that nothing contradicts
  std::vector<Objection> objections;
};

/// Checks a TOML document of [[statement]]s, each of one kind. `report` is the JSON of a report
/// that statements of the kind "figure" are compared with; empty: those are refused. Throws
/// Error{invalid_argument} with path and line for what is no statement.
Checked check_stated(std::string_view toml, std::string_view path, std::string_view report = "");

/// The kinds there are, for help and errors.
std::vector<std::string_view> statement_kinds();

TextTable stated_table(const Checked& checked);

}  // namespace sinew::report
