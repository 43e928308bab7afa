#include "imports/lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include <sinew/error.hpp>

namespace sinew::imports {
namespace {

template <class Number>
std::optional<Number> whole(std::string_view word) {
  Number value{};
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc{} || end != word.data() + word.size()) return {};
  return value;
}

}  // namespace

bool Lines::next() {
  if (rest_.empty()) return false;
  const auto end = std::min(rest_.find('\n'), rest_.size());
  line_ = rest_.substr(0, end);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  ++number_;
  return true;
}

std::string Lines::complaint(std::string_view why) const {
  return fmt::format("{}:{}: {}", name_, std::max<std::size_t>(number_, 1), why);
}

void Lines::fail(std::string_view why) const {
  throw Error(Errc::invalid_argument, complaint(why));
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlank = " \t";
  std::vector<std::string_view> words;
  for (auto at = line.find_first_not_of(kBlank); at != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

std::optional<double> number_of(std::string_view word) {
  const auto value = whole<double>(word);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::uint64_t> count_of(std::string_view word) { return whole<std::uint64_t>(word); }

std::optional<int> rank_of(std::string_view word) {
  const auto value = whole<int>(word);
  return value && *value >= 0 && *value <= 1 << 24 ? value : std::nullopt;
}

std::optional<std::uint64_t> total_bytes(std::uint64_t calls, double mean) {
  const double total = std::round(static_cast<double>(calls) * mean);
  if (!(total >= 0) || total > 0x1p62) return {};
  return static_cast<std::uint64_t>(total);
}

std::string text_of(double number) { return fmt::format("{}", number); }

}  // namespace sinew::imports
