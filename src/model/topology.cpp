#include "model/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

int parse_rank(std::string_view word, const std::string& text) {
  int rank = -1;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), rank);
  if (status != std::errc{} || end != word.data() + word.size() || rank < 0)
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' in '{}' is not a rank; write ranks as 0..3,7", word, text));
  return rank;
}

}  // namespace

RankRanges RankRanges::parse(const std::string& text) {
  RankRanges set;
  for (const auto word : split(text, ',')) {
    const auto dots = word.find("..");
    const int first = parse_rank(word.substr(0, dots), text);
    const int last =
        dots == std::string_view::npos ? first : parse_rank(word.substr(dots + 2), text);
    if (last < first)
      throw Error(Errc::invalid_argument, fmt::format("'{}' is an empty range of ranks", word));
    set.ranges_.emplace_back(first, last);
  }
  return set;
}

bool RankRanges::contains(int rank) const noexcept {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
    return range.first <= rank && rank <= range.second;
  });
}

int RankRanges::first() const noexcept {
  int first = std::numeric_limits<int>::max();
  for (const auto& range : ranges_) first = std::min(first, range.first);
  return first;
}

std::string RankRanges::text() const {
  std::vector<std::string> words;
  for (const auto& [first, last] : ranges_)
    words.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}..{}", first, last));
  return fmt::format("{}", fmt::join(words, ","));
}

double Link::full_byte_ps() const noexcept {
  if (capacity_gbytes > 0) return 1e3 / capacity_gbytes;
  const double one = one_way.least_byte_ps();
  return exchange.is_free() ? one : std::min(one, exchange.least_byte_ps());
}

std::int64_t Topology::room() const noexcept {
  std::int64_t places = 1;
  for (const auto& level : levels) {
    if (level.size == 0) return 0;
    places = std::min<std::int64_t>(places * level.size, std::int64_t{1} << 40);
  }
  return levels.empty() ? 0 : places;
}

void Topology::check_covers(int size) const {
  if (const auto most = room(); most > 0 && size > most) {
    std::vector<std::string> sizes;
    for (const auto& level : levels) sizes.push_back(std::to_string(level.size));
    throw Error(
        Errc::invalid_argument,
        fmt::format("{}: the levels hold {}{} ranks, but there are {}; make '{}' larger, "
                    "or leave its size out for any number",
                    where, fmt::join(sizes, " x "),
                    sizes.size() > 1 ? fmt::format(" = {}", most) : "", size, levels.back().name));
  }
}

std::vector<int> Topology::node_of(int size) const {
  if (levels.size() < 2 || levels.front().size >= size) return {};
  const int members = levels.front().size, nodes = (size + members - 1) / members;
  std::vector<int> map(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank)
    map[static_cast<std::size_t>(rank)] =
        placement == RankOrder::blocked ? rank / members : rank % nodes;
  return map;
}

}  // namespace sinew
