#include "cli/networks.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "model/network_file.hpp"

namespace sinew {

Network load_network(const std::string& text, std::span<const std::string> settings) {
  // A file may be called anything, a line cannot be mistaken for one: it has a '='.
  if (std::filesystem::exists(text) || text.find('=') == std::string::npos)
    return parse_network(read_text(text), text, settings);
  if (!settings.empty()) return parse_network(to_toml(parse_network_line(text)), text, settings);
  return parse_network_line(text);
}

std::vector<int> parse_doubling_ranks(const std::string& text) {
  std::set<int> ranks;
  for (const auto word : split(text, ',')) {
    const auto dots = word.find("..");
    if (dots == std::string_view::npos) {
      ranks.merge(std::set<int>{parse_ranks(word).front()});
      continue;
    }
    const int first = parse_ranks(word.substr(0, dots)).front();
    const int last = parse_ranks(word.substr(dots + 2)).front();
    if (last < first)
      throw Error(Errc::invalid_argument, fmt::format("'{}' is an empty range", word));
    for (long count = first; count < last; count *= 2) ranks.insert(static_cast<int>(count));
    ranks.insert(last);
  }
  return {ranks.begin(), ranks.end()};
}

}  // namespace sinew
