#include "report/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "report/performance_findings.hpp"
#include "report/shares.hpp"
#include "report/summary_detail.hpp"
#include "report/wire.hpp"

namespace sinew::report {
namespace {

using trace::Profile;
using trace::Totals;

constexpr double kNs = 1e-9;

std::optional<double> waited_share(const Totals& totals) {
  if (totals.resolved == 0 || totals.resolved_ns <= 0) return std::nullopt;
  return totals.waited_ns / totals.resolved_ns;
}

std::optional<double> covered_share(const Totals& totals) {
  if (totals.in_flight_ns <= 0) return std::nullopt;
  return std::max(0.0, 1 - totals.blocked_ns / totals.in_flight_ns);
}

/// A routine's calls, or those of them that the program labelled.
struct Group {
  std::string routine;
  Totals totals;
  std::map<std::uint64_t, SizeRow> sizes;
};

/// Labels of our own traces are names that a program gave to its messages; those of other tools are
/// tensors and call sites, of which there are too many.
std::map<std::string, Group> groups_of(const Profile& profile) {
  std::map<std::string, Group> groups;
  const auto shown = [&](const trace::ProfileKey& key) {
    return key.label.empty() || !profile.source.empty()
               ? key.routine
               : fmt::format("{} ({})", key.routine, key.label);
  };
  std::set<std::string> labelled;
  for (const auto& [key, totals] : profile.rows)
    if (shown(key) != key.routine) labelled.insert(key.routine);
  for (const auto& [name, totals] : profile.routines)
    if (trace::is_communication(name) && !labelled.contains(name))
      groups[name] = {name, totals, {}};
  for (const auto& [key, totals] : profile.rows) {
    if (!trace::is_communication(key.routine)) continue;
    auto& group = groups[shown(key)];
    group.routine = key.routine;
    if (labelled.contains(key.routine)) group.totals.add(totals);
    auto& row = group.sizes[key.bytes];
    row.bytes = key.bytes;
    row.calls += totals.calls;
    row.moved += key.bytes * totals.calls;
    row.seconds += totals.total_ns * kNs;
    row.waited_s += totals.waited_ns * kNs;
    row.sent += totals.sent;
  }
  return groups;
}

std::vector<SizeRow> rows_of(const Group& group) {
  std::vector<SizeRow> rows;
  for (const auto& [bytes, row] : group.sizes) rows.push_back(row);
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
    bins.back().waited_s += row.waited_s;
    bins.back().sent += row.sent;
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

RoutineSummary summary_of(const std::string& name, const Group& group, int ranks) {
  const auto& totals = group.totals;
  RoutineSummary routine;
  routine.name = name;
  routine.routine = group.routine;
  routine.calls = totals.calls;
  routine.sent = totals.sent;
  routine.received = totals.received;
  routine.seconds = totals.total_ns * kNs;
  routine.waited_share = waited_share(totals);
  routine.covered_share = covered_share(totals);
  routine.sizes = rows_of(group);
  for (const auto& row : routine.sizes)
    routine.wire_bytes += static_cast<double>(row.calls) *
                          wire_bytes(group.routine, row.bytes, row.sent / row.calls, ranks).value;
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

/// Collectives of all ranks that some rank called more often than another; in order ended runs
/// only.
std::vector<std::string> disagreements_of(const Profile& profile) {
  std::map<std::string, std::map<int, std::uint64_t>> calls;  // by routine and rank
  for (const auto& rank : profile.ranks) {
    if (!rank.closed) return {};
    for (const auto& [key, totals] : rank.rows) {
      const auto info = profile.communicators.find(key.communicator);
      if (info == profile.communicators.end() || !collective_of(key.routine) ||
          info->second.size != static_cast<int>(profile.ranks.size()))
        continue;
      calls[key.routine][rank.rank] += totals.calls;
    }
  }
  std::vector<std::string> found;
  for (const auto& [routine, by_rank] : calls) {
    const auto [least, most] =
        std::minmax_element(by_rank.begin(), by_rank.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    if (by_rank.size() != profile.ranks.size() || least->second != most->second)
      found.push_back(
          fmt::format("{} of all ranks was called {} times by rank {}, {} times by rank {}",
                      routine, most->second, most->first,
                      by_rank.size() == profile.ranks.size() ? least->second : 0, least->first));
  }
  return found;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string verdict_of(const Summary& summary, const Profile& profile) {
  if (summary.routines.empty()) {
    std::uint64_t recorded = 0;
    for (const auto& rank : profile.ranks) recorded += rank.all.calls;
    return fmt::format(
        "No communication was captured: {}.",
        recorded == 0
            ? "no rank called anything that is recorded"
            : fmt::format("the {} recorded calls ask or compute, none sends or waits", recorded));
  }
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

namespace {

/// All that follows from sums.
Summary sums_of(const Profile& profile) {
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
  const auto ranks = std::max(static_cast<int>(profile.ranks.size()),
                              profile.ranks.empty() ? 1 : profile.ranks.front().size);
  for (const auto& [name, group] : groups_of(profile))
    if (group.totals.calls > 0) summary.routines.push_back(summary_of(name, group, ranks));
  std::stable_sort(summary.routines.begin(), summary.routines.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  double in_routines = 0;
  for (const auto& routine : summary.routines) in_routines += routine.seconds;
  for (auto& routine : summary.routines) {
    routine.share = ratio(routine.seconds, in_routines);
    if (is_receive(routine.routine)) continue;  // its sender has given them
    for (const auto& row : routine.sizes) summary.given += row.moved;
  }
  summary.matrix = matrix_of(profile);
  if (profile.source.empty()) summary.disagreements = disagreements_of(profile);
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
  return summary;
}

/// What the figures mean, when all are there.
void conclude(Summary& summary, const Profile& profile) {
  summary.verdict = verdict_of(summary, profile);
  summary.findings = find_all(profile);
  auto more = find_performance(summary);
  summary.findings.insert(summary.findings.end(), std::make_move_iterator(more.begin()),
                          std::make_move_iterator(more.end()));
  std::stable_sort(summary.findings.begin(), summary.findings.end(),
                   [](const auto& a, const auto& b) { return a.cost_s > b.cost_s; });
  const auto contradicting = contradictions(summary);
  for (auto what = contradicting.rbegin(); what != contradicting.rend(); ++what)
    summary.findings.insert(summary.findings.begin(), contradiction(*what));
}

}  // namespace

Summary summarize(const Profile& profile, const SummaryOptions& options) {
  auto summary = sums_of(profile);
  add_link(summary, options);
  conclude(summary, profile);
  return summary;
}

Summary summarize(const Profile& profile, std::span<const trace::Trace> traces,
                  const SummaryOptions& options) {
  auto summary = sums_of(profile);
  add_detail(summary, profile, traces);
  add_link(summary, options);
  conclude(summary, profile);
  return summary;
}

}  // namespace sinew::report
