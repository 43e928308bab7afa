#include "report/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace sinew::report {
namespace {

using trace::Profile;
using trace::Totals;

constexpr double kNs = 1e-9;

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::optional<double> waited_share(const Totals& totals) {
  if (totals.resolved == 0 || totals.resolved_ns <= 0) return std::nullopt;
  return totals.waited_ns / totals.resolved_ns;
}

std::optional<double> covered_share(const Totals& totals) {
  if (totals.in_flight_ns <= 0) return std::nullopt;
  return std::max(0.0, 1 - totals.blocked_ns / totals.in_flight_ns);
}

std::vector<SizeRow> sizes_of(const Profile& profile, const std::string& routine) {
  std::map<std::uint64_t, SizeRow> sizes;
  for (const auto& [key, totals] : profile.rows) {
    if (key.routine != routine) continue;
    auto& row = sizes[key.bytes];
    row.bytes = key.bytes;
    row.calls += totals.calls;
    row.moved += key.bytes * totals.calls;
    row.seconds += totals.total_ns * kNs;
  }
  std::vector<SizeRow> rows;
  for (const auto& [bytes, row] : sizes) rows.push_back(row);
  return rows;
}

std::vector<SizeRow> bins_of(const std::vector<SizeRow>& sizes) {
  std::vector<SizeRow> bins;
  for (const auto& row : sizes) {
    const auto bin = std::bit_floor(row.bytes);
    if (bins.empty() || bins.back().bytes != bin) bins.push_back({.bytes = bin});
    bins.back().calls += row.calls;
    bins.back().moved += row.moved;
    bins.back().seconds += row.seconds;
  }
  return bins;
}

Spread spread_of(const std::vector<SizeRow>& sizes) {
  Spread spread;
  if (sizes.empty()) return spread;
  std::uint64_t calls = 0, moved = 0, most_calls = 0, before = 0;
  for (const auto& row : sizes) {
    calls += row.calls;
    moved += row.moved;
    if (row.calls > most_calls) {
      most_calls = row.calls;
      spread.mode = row.bytes;
    }
  }
  for (const auto& row : sizes) {
    if (before <= (calls - 1) / 2) spread.median = row.bytes;
    before += row.calls;
  }
  spread.least = sizes.front().bytes;
  spread.most = sizes.back().bytes;
  spread.mean = ratio(static_cast<double>(moved), static_cast<double>(calls));
  spread.distinct = sizes.size();
  return spread;
}

RoutineSummary summary_of(const Profile& profile, const std::string& name, const Totals& totals) {
  RoutineSummary routine;
  routine.name = name;
  routine.calls = totals.calls;
  routine.sent = totals.sent;
  routine.received = totals.received;
  routine.seconds = totals.total_ns * kNs;
  routine.waited_share = waited_share(totals);
  routine.covered_share = covered_share(totals);
  routine.sizes = sizes_of(profile, name);
  if (routine.sizes.size() == 1 && routine.sizes[0].bytes == 0) routine.sizes.clear();
  routine.bins = bins_of(routine.sizes);
  routine.spread = spread_of(routine.sizes);
  return routine;
}

RankSummary summary_of(const trace::RankProfile& rank) {
  RankSummary result;
  result.rank = rank.rank;
  result.host = rank.host;
  result.complete = rank.closed;
  result.calls = trace::communicating_calls(rank);
  result.sent = rank.all.sent;
  result.received = rank.all.received;
  result.elapsed_s = rank.elapsed_ns * kNs;
  result.communication_s = rank.communication_ns * kNs;
  if (rank.all.resolved > 0) result.waited_s = rank.all.waited_ns * kNs;
  return result;
}

// Only what was sent to a rank by name: a message from any source is known by its sender.
Matrix matrix_of(const Profile& profile) {
  Matrix matrix;
  std::map<int, std::size_t> place;
  for (const auto& rank : profile.ranks) {
    place.emplace(rank.rank, matrix.ranks.size());
    matrix.ranks.push_back(rank.rank);
  }
  bool any = false;
  std::vector<std::vector<std::uint64_t>> sent(place.size(),
                                               std::vector<std::uint64_t>(place.size()));
  for (const auto& rank : profile.ranks)
    for (const auto& [key, totals] : rank.rows) {
      if (totals.sent == 0 || !place.contains(key.peer)) continue;
      sent[place[rank.rank]][place[key.peer]] += totals.sent;
      any = true;
    }
  if (any) matrix.sent = std::move(sent);
  return matrix;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string verdict_of(const Summary& summary) {
  if (summary.calls == 0 || summary.routines.empty())
    return "No communication was captured: no rank called anything that communicates.";
  const auto& costliest = summary.routines.front();
  auto text = fmt::format("{} {} spent {} of {:.3g} s communicating, most of it in {} ({})",
                          summary.ranks.size(), summary.ranks.size() == 1 ? "rank" : "ranks",
                          percent(summary.communication_share), summary.elapsed_s, costliest.name,
                          percent(costliest.share));
  if (summary.waited_share)
    text += fmt::format("; {} of what could be compared was waiting for other ranks",
                        percent(*summary.waited_share));
  return text + ".";
}

Finding contradiction(const std::string& what) {
  return {
      .id = "contradiction",
      .claim = fmt::format("The figures contradict each other: {}.", what),
      .arithmetic = {},
      .evidence = {},
      .confidence = Confidence::measured,
      .advice = {"Do not trust this report before that is explained; the trace may be damaged."},
      .command = ""};
}

}  // namespace

Summary summarize(const Profile& profile) {
  Summary summary;
  summary.source = profile.source;
  std::set<std::string> hosts;
  double communication = 0, elapsed = 0, waited = 0, compared = 0;
  for (const auto& rank : profile.ranks) {
    summary.ranks.push_back(summary_of(rank));
    const auto& mine = summary.ranks.back();
    if (!rank.host.empty()) hosts.insert(rank.host);
    if (summary.command.empty()) summary.command = rank.command;
    if (summary.made_by.empty()) summary.made_by = rank.mpi;
    summary.elapsed_s = std::max(summary.elapsed_s, mine.elapsed_s);
    summary.sent += mine.sent;
    summary.received += mine.received;
    summary.calls += mine.calls;
    communication += mine.communication_s;
    elapsed += mine.elapsed_s;
    waited += rank.all.waited_ns;
    compared += rank.all.resolved_ns;
  }
  summary.hosts.assign(hosts.begin(), hosts.end());
  summary.communication_share = ratio(communication, elapsed);
  if (compared > 0) summary.waited_share = waited / compared;
  for (const auto& [name, totals] : profile.routines)
    if (trace::is_communication(name))
      summary.routines.push_back(summary_of(profile, name, totals));
  std::stable_sort(summary.routines.begin(), summary.routines.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  double in_routines = 0;
  for (const auto& routine : summary.routines) in_routines += routine.seconds;
  for (auto& routine : summary.routines) {
    routine.share = ratio(routine.seconds, in_routines);
    for (const auto& row : routine.sizes) summary.given += row.moved;
  }
  summary.matrix = matrix_of(profile);
  summary.findings = find_all(profile);
  summary.notes = profile.warnings;
  for (const auto& rank : profile.ranks)
    for (const auto& problem : rank.problems)
      summary.notes.push_back(fmt::format("rank {}: {}", rank.rank, problem));
  for (const auto& rank : summary.ranks)
    if (rank.communication_s > rank.elapsed_s)
      summary.notes.push_back(fmt::format(
          "rank {} communicated for {:.3g} s within {:.3g} s: several of its threads did "
          "at once, so its shares of time add up to more than one",
          rank.rank, rank.communication_s, rank.elapsed_s));
  summary.verdict = verdict_of(summary);
  for (const auto& what : contradictions(summary))
    summary.findings.insert(summary.findings.begin(), contradiction(what));
  return summary;
}

std::vector<std::string> contradictions(const Summary& summary) {
  std::vector<std::string> found;
  const double rounding = summary.source.empty() ? 1e-6 : 2e-3;  // other tools print milliseconds
  for (const auto& routine : summary.routines) {
    if (routine.sizes.empty()) continue;
    std::uint64_t calls = 0, binned = 0;
    double seconds = 0;
    for (const auto& row : routine.sizes) {
      calls += row.calls;
      seconds += row.seconds;
    }
    for (const auto& row : routine.bins) binned += row.calls;
    if (calls != routine.calls || binned != calls)
      found.push_back(fmt::format("{} was called {} times, its sizes make {} and its bins {}",
                                  routine.name, routine.calls, calls, binned));
    if (seconds > routine.seconds * (1 + rounding) + rounding)
      found.push_back(fmt::format("{} took {:.6g} s, its sizes {:.6g} s", routine.name,
                                  routine.seconds, seconds));
    const auto& [least, mode, median, most, mean, distinct] = routine.spread;
    const bool ordered = least <= mode && mode <= most && least <= median && median <= most &&
                         static_cast<double>(least) <= mean + rounding &&
                         mean <= static_cast<double>(most) + rounding;
    if (!ordered || distinct != routine.sizes.size())
      found.push_back(fmt::format(
          "{}: sizes from {} to {} with mode {}, median {}, mean {:.1f} and {} distinct of {}",
          routine.name, least, most, mode, median, mean, distinct, routine.sizes.size()));
  }
  for (const auto& rank : summary.ranks) {
    if (rank.waited_s.value_or(0) > rank.communication_s * (1 + rounding) + rounding)
      found.push_back(fmt::format("rank {} waited for {:.6g} s in {:.6g} s of communication",
                                  rank.rank, *rank.waited_s, rank.communication_s));
  }
  return found;
}

}  // namespace sinew::report
