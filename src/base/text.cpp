#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include <sinew/error.hpp>

namespace sinew {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

int parse_rank(std::string_view text, std::string_view whole) {
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || value < 1)
    throw Error(
        Errc::invalid_argument,
        fmt::format("'{}' is not a list of rank counts; write 4, or 2,4,8, or 2..16", whole));
  return value;
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const auto candidate : candidates) {
    const bool begins = (candidate.starts_with(word) && word.size() > 1) ||
                        (word.starts_with(candidate) && candidate.size() > 2);
    const std::size_t distance = begins ? 1 : edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string unknown(std::string_view kind, std::string_view word,
                    std::span<const std::string_view> candidates) {
  const auto suggestion = nearest(word, candidates);
  if (!suggestion.empty())
    return fmt::format("unknown {} '{}'; did you mean '{}'?", kind, word, suggestion);
  return fmt::format("unknown {} '{}'; there are: {}", kind, word, fmt::join(candidates, ", "));
}

std::uint64_t parse_bytes(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  int shift = -1;
  if (suffix.empty() || suffix == "B") shift = 0;
  constexpr std::string_view kLetters = "KMGT";
  if (!suffix.empty() && shift < 0) {
    const auto at = kLetters.find(suffix.front() == 'k' ? 'K' : suffix.front());
    const auto rest = suffix.substr(1);
    if (at != std::string_view::npos && (rest.empty() || rest == "iB" || rest == "B"))
      shift = 10 * (static_cast<int>(at) + 1);
  }
  const double bytes = std::ldexp(value, std::max(shift, 0));
  if (status != std::errc{} || shift < 0 || !(bytes >= 0) || bytes > 0x1p62)
    throw Error(
        Errc::invalid_argument,
        fmt::format("'{}' is not a size; write 4096, 4K, 1M or 2G (binary multiples)", text));
  return static_cast<std::uint64_t>(bytes);
}

std::vector<std::uint64_t> parse_bytes_list(std::string_view text) {
  std::vector<std::uint64_t> sizes;
  for (const auto word : split(text, ',')) sizes.push_back(parse_bytes(word));
  return sizes;
}

std::vector<int> parse_ranks(std::string_view text) {
  constexpr int kMost = 1 << 20;
  std::set<int> ranks;
  for (const auto word : split(text, ',')) {
    const auto dots = word.find("..");
    const int first = parse_rank(word.substr(0, dots), text);
    const int last =
        dots == std::string_view::npos ? first : parse_rank(word.substr(dots + 2), text);
    if (last < first || last > kMost)
      throw Error(Errc::invalid_argument, fmt::format("'{}' is an empty or too long range", word));
    for (int rank = first; rank <= last; ++rank) ranks.insert(rank);
  }
  return {ranks.begin(), ranks.end()};
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (true) {
    const auto at = text.find(separator);
    words.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return words;
    text.remove_prefix(at + 1);
  }
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  auto value = bytes;
  while (value >= 1024 && value % 1024 == 0 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (value < 1024) return fmt::format("{} {}", value, kUnits[unit]);
  if (bytes < 1000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  if (bytes < 1000'000'000) return fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6);
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

std::string human_ns(double nanoseconds) {
  if (nanoseconds < 1e6) return fmt::format("{:.2f} us", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return fmt::format("{:.2f} ms", nanoseconds / 1e6);
  return fmt::format("{:.2f} s", nanoseconds / 1e9);
}

}  // namespace sinew
