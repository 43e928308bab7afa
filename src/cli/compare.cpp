// `sinew compare`: two runs beside each other, and a status that a script can act on.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include <sinew/error.hpp>
#include "base/wrapped.hpp"
#include "cli/arguments.hpp"
#include "cli/run_sides.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"

namespace sinew {
namespace {

/// "5%" and "0.05" are the same.
double parse_share(const std::string& text) {
  const bool percent = text.ends_with('%');
  const auto digits = percent ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value) ||
      value < 0)
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' is no share; write --fail-over 5% or 0.05", text));
  return percent ? value / 100 : value;
}

std::string text_of(const report::Comparison& comparison) {
  const auto words = comparison_table(comparison);
  Table table({{"what"},
               {"before", Align::right},
               {"after", Align::right},
               {"ratio", Align::right},
               {"significance"}});
  for (const auto& row : words.rows) table.add({row[0], row[1], row[3], row[5], row[6]});
  auto text = table.text(0) + '\n' + wrapped(words.about) + '\n';
  for (const auto& note : comparison.notes) text += wrapped("note: " + note, 80, 6) + '\n';
  return text;
}

}  // namespace

int run_compare(int argc, char** argv) {
  CLI::App app{
      "Sets two runs beside each other: times, bytes, ratios, and whether they differ by more than "
      "chance. A folder of folders with traces is repeats of one run. With --fail-over the time of "
      "an iteration (or of the run) and the bytes on the wire may grow by that much; else it exits "
      "5.",
      "sinew compare"};
  std::string before, after, limit;
  bool json = false;
  app.add_option("before", before, "folder of a run")->required();
  app.add_option("after", after, "folder of another")->required();
  app.add_option("--fail-over", limit, "exit 5 when it is worse by more: 5%");
  app.add_flag("--json", json, "as JSON");
  if (const auto status = parse(app, argc, argv)) return *status;
  const auto most = limit.empty() ? 0 : parse_share(limit);
  const auto sides = read_sides({before, after}, {});
  const auto comparison = compare(sides[0].side, sides[1].side);
  fmt::print("{}", json ? to_json(comparison) : text_of(comparison));
  if (limit.empty()) return kFine;
  const auto worse = worse_than(comparison, most);
  for (const auto* const row : worse)
    fmt::print(stderr, "sinew: {} is {:.1f} % worse, more than {}\n", row->what,
               100 * (row->ratio() - 1), limit);
  return worse.empty() ? kFine : kMissed;
}

}  // namespace sinew
