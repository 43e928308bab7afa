#include "report/words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace sinew::report {
namespace {

constexpr std::size_t kMostRoutines = 8, kMostSizes = 10;
constexpr double kLeastShare = 0.001;  // of the time in communication, to have sizes listed

std::string count(std::uint64_t value) { return fmt::format("{}", value); }
std::string bytes(std::uint64_t value) { return value == 0 ? "-" : human_bytes(value); }

}  // namespace

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string percent(const std::optional<double>& share) { return share ? percent(*share) : ""; }
std::string seconds(double value) { return human_ns(value * 1e9); }

TextTable routine_table(const Summary& summary) {
  TextTable table{"Routines",
                  "Over all ranks. Waiting is the share of the calls whose arrivals could be "
                  "compared; covered is the share of a request's life outside the call that "
                  "completed it.",
                  {"routine", "calls", "sent", "received", "time", "share", "waiting", "covered"},
                  {}};
  for (const auto& routine : summary.routines)
    table.rows.push_back({routine.name, count(routine.calls), bytes(routine.sent),
                          bytes(routine.received), seconds(routine.seconds), percent(routine.share),
                          percent(routine.waited_share), percent(routine.covered_share)});
  return table;
}

TextTable rank_table(const Summary& summary) {
  TextTable table{
      "Ranks",
      "",
      {"rank", "host", "elapsed", "outside", "moving", "waiting", "came last", "sent", "received"},
      {}};
  for (const auto& rank : summary.ranks)
    table.rows.push_back(
        {rank.rank >= 0 ? fmt::format("{}{}", rank.rank, rank.complete ? "" : " (cut short)") : "-",
         rank.host, seconds(rank.elapsed_s), seconds(rank.other_s()), seconds(rank.moving_s()),
         rank.waited_s ? seconds(*rank.waited_s) : "not known",
         summary.imbalance && summary.imbalance->compared > 0 ? count(rank.last) : "not known",
         bytes(rank.sent), bytes(rank.received)});
  return table;
}

TextTable matrix_table(const Summary& summary) {
  TextTable table{"Messages from rank to rank",
                  "Bytes sent in point-to-point messages; a row is the sender.",
                  {"from \\ to"},
                  {}};
  for (const int rank : summary.matrix.ranks) table.columns.push_back(fmt::format("{}", rank));
  for (std::size_t from = 0; from < summary.matrix.sent.size(); ++from) {
    auto& row = table.rows.emplace_back();
    row.push_back(fmt::format("{}", summary.matrix.ranks[from]));
    for (const auto sent : summary.matrix.sent[from]) row.push_back(bytes(sent));
  }
  return table;
}

TextTable size_table(const RoutineSummary& routine) {
  const auto& spread = routine.spread;
  TextTable table{
      routine.name,
      fmt::format("{} distinct sizes, {} to {} bytes; most frequent {}, median {}, mean {:.1f}.",
                  spread.distinct, spread.least, spread.most, spread.mode, spread.median,
                  spread.mean),
      {"bytes", "calls", "share of calls", "bytes of all", "time", "mean time"},
      {}};
  auto sizes = routine.sizes;
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const auto& a, const auto& b) { return a.calls > b.calls; });
  const auto left_out = sizes.size() - std::min(sizes.size(), kMostSizes);
  sizes.resize(sizes.size() - left_out);
  for (const auto& row : sizes)
    table.rows.push_back({count(row.bytes), count(row.calls),
                          percent(static_cast<double>(row.calls) /
                                  static_cast<double>(std::max<std::uint64_t>(routine.calls, 1))),
                          bytes(row.moved), seconds(row.seconds),
                          seconds(row.seconds / static_cast<double>(row.calls))});
  if (left_out > 0) table.about += fmt::format(" The ten most frequent; {} more.", left_out);
  if (routine.reduction && routine.reduction->first > 1.01)
    table.about += fmt::format(
        " A whole gradient is {:.1f} to {:.0f} times one of its messages, which is not what was "
        "saved.",
        routine.reduction->first, routine.reduction->second);
  return table;
}

std::vector<const RoutineSummary*> sized_routines(const Summary& summary) {
  std::vector<const RoutineSummary*> routines;
  for (const auto& routine : summary.routines)
    if (!routine.sizes.empty() && routines.size() < kMostRoutines &&
        (routines.empty() || routine.share >= kLeastShare))
      routines.push_back(&routine);
  return routines;
}

std::vector<std::pair<std::string, std::string>> headline(const Summary& summary) {
  const auto label = [&](std::string text) { return with_label(std::move(text), summary.times); };
  if (summary.routines.empty())
    return {{"elapsed", label(seconds(summary.elapsed_s))},
            {"in communication", "not captured"},
            {"sent by all ranks", "not captured"}};
  return {{"of the time in communication", label(percent(summary.communication_share))},
          {"waiting for others, of what could be compared",
           summary.waited_share ? label(percent(*summary.waited_share)) : "not known"},
          summary.sent > 0
              ? std::pair<std::string, std::string>{"sent by all ranks", human_bytes(summary.sent)}
              : std::pair<std::string, std::string>{"given to the calls", bytes(summary.given)}};
}

}  // namespace sinew::report
