// What verbs share in reading their command line.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include <sinew/algorithms.hpp>

namespace sinew {

/// Reads argv into `app`. --help prints and gives the status to leave with; what is wrong throws
/// Error{invalid_argument}; nothing means: go on.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

/// Refuses other numbers, without a word in the help.
template <class Number>
CLI::Validator between(Number least, Number most) {
  return CLI::Range(least, most).description("");
}

/// Throws Error{invalid_argument} that suggests the option nearest to `word`.
[[noreturn]] void throw_unknown_option(const CLI::App& app, std::string_view word);

/// "2x4" (two nodes of four ranks), "3,1" (nodes of three ranks and of one) as a node map.
std::vector<int> parse_nodes(const std::string& text);

/// The one rank count of "-p", which may be left out when the node map tells it.
int one_size(const std::string& ranks, const std::vector<int>& node_of);

/// Rows of the registry of one collective.
std::vector<const Algorithm*> algorithms_of(Collective collective);

/// A map for algorithms that fit several nodes only: two halves. Empty for all others.
std::vector<int> default_nodes(const Algorithm& algorithm, int size);

/// The whole file, or standard input for "-". Throws Error{system}.
std::string read_text(const std::string& path);

/// The command as it was typed, to be shown beside what it made.
std::string command_line(std::string_view verb, int argc, char** argv);

}  // namespace sinew
