// The drawing in letters.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "report/explain.hpp"

namespace sinew::report {
namespace {

class Rows {
 public:
  Rows(std::vector<int> ranks, Picoseconds end, std::size_t width)
      : ranks_(std::move(ranks)), end_(end), rows_(ranks_.size(), std::string(width, '.')) {}

  /// Over `from` to `to` of one rank; what is on the chain covers what is not.
  void put(int rank, Picoseconds from, Picoseconds to, char letter) {
    const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
    if (found == ranks_.end() || *found != rank || to <= from) return;
    auto& row = rows_[static_cast<std::size_t>(found - ranks_.begin())];
    for (auto at = column(from, row.size()); at <= column(to - 1, row.size()); ++at) {
      auto& cell = row[at];
      const bool both = (cell == 's' && letter == 'r') || (cell == 'r' && letter == 's');
      cell = both ? 'x' : cell == 'x' && letter != 'c' ? 'x' : letter;
    }
  }
  void cover(int rank, Picoseconds from, Picoseconds to, char letter) {
    const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
    if (found == ranks_.end() || *found != rank || to <= from) return;
    auto& row = rows_[static_cast<std::size_t>(found - ranks_.begin())];
    const auto first = column(from, row.size()), last = column(to - 1, row.size());
    std::fill(row.begin() + static_cast<std::ptrdiff_t>(first),
              row.begin() + static_cast<std::ptrdiff_t>(last) + 1, letter);
  }
  [[nodiscard]] std::string text() const {
    std::string result;
    for (std::size_t i = 0; i < rows_.size(); ++i)
      result += fmt::format("{:>7} {}\n", ranks_[i], rows_[i]);
    return result;
  }

 private:
  [[nodiscard]] std::size_t column(Picoseconds at, std::size_t width) const {
    const double share = static_cast<double>(at) / static_cast<double>(std::max(end_, {1}));
    return std::min(width - 1, static_cast<std::size_t>(share * static_cast<double>(width)));
  }
  std::vector<int> ranks_;
  Picoseconds end_;
  std::vector<std::string> rows_;
};

}  // namespace

std::string explain_as_text(const CriticalPath& path, std::span<const Activity> activities,
                            int columns) {
  constexpr std::size_t kMostRanks = 16;
  const auto width = static_cast<std::size_t>(std::clamp(columns, 40, 200)) - 9;
  Rows rows(ranks_shown(path, activities, kMostRanks), path.end, width);
  for (const auto& each : activities) {
    const bool message = each.op == Op::send;
    rows.put(each.rank, each.begin, each.sent, message ? 's' : 'c');
    if (message) rows.put(each.peer, each.begin, each.end, 'r');
  }
  for (const auto& step : path.steps) {
    const bool message = step.op == Op::send;
    rows.cover(step.rank, step.begin, std::min(step.sent, step.end), message ? 'S' : 'C');
    if (message) rows.cover(step.peer, step.begin, step.end, 'R');
  }
  const auto until = short_time(static_cast<double>(path.end));
  return fmt::format("{:>7} 0{:>{}}\n", "rank", until, width - 1) + rows.text() +
         "        s sends, r receives, x both, c combines or copies, . waits;\n"
         "        capitals: on the longest chain\n";
}

}  // namespace sinew::report
