#include "cli/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include <sinew/error.hpp>
#include "base/narrow_help.hpp"
#include "base/text.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"

namespace sinew {
namespace {

constexpr int kMostRanks = 4096;  // beyond this a schedule of every rank is no longer small

int parse_count(std::string_view text, std::string_view whole) {
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || value < 1 || value > kMostRanks)
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' is not a node map; write 2x4 (two nodes of four ranks) or 3,1 "
                            "(a node of three, a node of one)",
                            whole));
  return value;
}

// The first option before any "--" that the verb does not have, or "".
std::string_view stray_option(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view word(argv[i]), name = word.substr(0, word.find('='));
    if (name.starts_with("--") && app.get_option_no_throw(std::string(name)) == nullptr)
      return name;
  }
  return {};
}

}  // namespace

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  app.formatter(std::make_shared<NarrowHelp>());
  try {
    app.parse(argc, argv);
    return {};
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kFine;
  } catch (const CLI::ParseError& error) {
    const auto stray = stray_option(app, argc, argv);
    if (!stray.empty()) throw_unknown_option(app, stray);
    throw Error(Errc::invalid_argument,
                fmt::format("{}; `{} --help` lists the options", error.what(), app.get_name()));
  }
}

void throw_unknown_option(const CLI::App& app, std::string_view word) {
  std::vector<std::string_view> known;
  for (const auto* option : app.get_options())
    known.insert(known.end(), option->get_lnames().begin(), option->get_lnames().end());
  const auto near = nearest(word.substr(std::min<std::size_t>(2, word.size())), known);
  throw Error(
      Errc::invalid_argument,
      fmt::format("unknown option '{}'; {}`{} --help` lists the options", word,
                  near.empty() ? "" : fmt::format("did you mean '--{}'? ", near), app.get_name()));
}

std::vector<int> parse_nodes(const std::string& text) {
  std::vector<int> node_of;
  if (text.empty()) return node_of;
  int node = 0;
  const auto add = [&](int ranks) {
    node_of.insert(node_of.end(), static_cast<std::size_t>(ranks), node++);
  };
  if (const auto x = text.find('x'); x != std::string::npos) {
    const int ranks = parse_count(std::string_view(text).substr(x + 1), text);
    const int nodes = parse_count(std::string_view(text).substr(0, x), text);
    for (int i = 0; i < nodes && node_of.size() <= kMostRanks; ++i) add(ranks);
  } else {
    for (const auto word : split(text, ',')) add(parse_count(word, text));
  }
  if (node_of.size() > kMostRanks)
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' are more than {} ranks", text, kMostRanks));
  return node_of;
}

int one_size(const std::string& ranks, const std::vector<int>& node_of) {
  const int on_nodes = static_cast<int>(node_of.size());
  if (ranks.empty()) {
    if (node_of.empty()) throw Error(Errc::invalid_argument, "how many ranks? Say -p 4");
    return on_nodes;
  }
  const auto sizes = parse_ranks(ranks);
  if (sizes.size() != 1 || sizes.front() > kMostRanks)
    throw Error(Errc::invalid_argument,
                fmt::format("-p takes one rank count up to {} here, not '{}'", kMostRanks, ranks));
  if (!node_of.empty() && on_nodes != sizes.front())
    throw Error(Errc::invalid_argument, fmt::format("the node map holds {} ranks, but -p says {}",
                                                    on_nodes, sizes.front()));
  return sizes.front();
}

std::vector<const Algorithm*> algorithms_of(Collective collective) {
  std::vector<const Algorithm*> rows;
  for (const auto& algorithm : algorithms())
    if (algorithm.collective == collective) rows.push_back(&algorithm);
  return rows;
}

std::vector<int> default_nodes(const Algorithm& algorithm, int size) {
  std::vector<int> halves;
  for (int rank = 0; rank < size; ++rank) halves.push_back(2 * rank < size ? 0 : 1);
  const bool needs_nodes = !algorithm.fits({.size = size, .node_of = {}}, kOneHost) &&
                           algorithm.fits({.size = size, .node_of = halves}, kOneHost);
  return needs_nodes ? halves : std::vector<int>{};
}

std::string read_text(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || file.bad())
    throw Error(Errc::system, fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  return text;
}

std::string command_line(std::string_view verb, int argc, char** argv) {
  std::string words(verb);
  for (int i = 1; i < argc; ++i) words += fmt::format(" {}", argv[i]);
  return words;
}

}  // namespace sinew
