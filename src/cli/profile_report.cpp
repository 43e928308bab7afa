#include "cli/profile_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "report/finding.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;
using trace::Profile;
using trace::ProfileKey;
using trace::Totals;

std::string short_name(const std::string& routine) {
  // Not "MPI_ALLREDUCE", which is an activity of Horovod.
  const bool is_routine = routine.starts_with("MPI_") && routine.size() > 5 && routine[5] >= 'a';
  return is_routine ? routine.substr(4) : routine;
}

/// The share of the compared time that was waiting for others; "" where nothing was compared, "?"
/// where the clocks are not good enough to tell.
std::string wait_share(const Totals& totals, double clock_error_ns) {
  if (totals.resolved == 0 || totals.resolved_ns <= 0) return "";
  if (totals.resolved_ns < clock_error_ns * static_cast<double>(totals.resolved)) return "?";
  return fmt::format("{:.0f}%", 100 * totals.waited_ns / totals.resolved_ns);
}

/// The share of a request's life that its owner did not wait for it; "" for what makes none.
std::string overlap_share(const Totals& totals) {
  if (totals.in_flight_ns <= 0) return "";
  return fmt::format("{:.0f}%", 100 * std::max(0.0, 1 - totals.blocked_ns / totals.in_flight_ns));
}

/// What the source of an imported profile does not say has no cell.
std::string time_cell(const Totals& totals, double nanoseconds) {
  return totals.longest_ns <= 0 && totals.total_ns > 0 ? "" : human_ns(nanoseconds);
}

std::string bytes_cell(std::uint64_t bytes) { return bytes == 0 ? "-" : human_bytes(bytes); }

constexpr std::string_view kMeasured =
    "Measured, over all ranks. Sent and received are exact. wait: share of the time in collectives "
    "until the ranks they needed had come; hid: share of a request's life outside the call that "
    "completed it.";
constexpr std::string_view kImported =
    "As the source says it; what it does not say has no figure. wait: share of the time until the "
    "ranks that were needed had come; hid: share of its time that something else covered.";

template <class Rows>
auto by_time(const Rows& rows) {
  std::vector<std::pair<typename Rows::key_type, Totals>> sorted(rows.begin(), rows.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.total_ns > b.second.total_ns;
  });
  return sorted;
}

std::string routine_table(const Profile& profile) {
  constexpr auto kRight = Align::right;
  Table table({{"routine"},
               {"calls", kRight},
               {"sent", kRight},
               {"received", kRight},
               {"time", kRight},
               {"mean", kRight},
               {"wait", kRight},
               {"hid", kRight}});
  for (const auto& [routine, totals] : by_time(profile.routines))
    if (!trace::is_local(routine))
      table.add({short_name(routine), fmt::format("{}", totals.calls), bytes_cell(totals.sent),
                 bytes_cell(totals.received), human_ns(totals.total_ns),
                 human_ns(totals.total_ns / static_cast<double>(totals.calls)),
                 wait_share(totals, profile.clock_error_ns), overlap_share(totals)});
  return table.text(0);
}

/// Calls that are no communication, in one line.
std::string local_line(const Profile& profile) {
  std::string names;
  for (const auto& [routine, totals] : by_time(profile.routines))
    if (trace::is_local(routine))
      names += fmt::format("{}{} {} ({})", names.empty() ? "" : ", ", totals.calls,
                           short_name(routine), human_ns(totals.total_ns));
  return names.empty() ? "" : wrapped("besides, no communication: " + names, 80, 2) + '\n';
}

/// Sizes of a routine over all communicators, regions and peers.
std::string size_table(const Profile& profile, std::size_t rows) {
  struct Size {
    std::string routine;
    std::uint64_t bytes;
    auto operator<=>(const Size&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  std::map<Size, Totals> sizes;
  for (const auto& [key, totals] : profile.rows) sizes[{key.routine, key.bytes}].add(totals);
  std::erase_if(sizes, [](const auto& row) { return row.first.bytes == 0; });
  if (sizes.empty()) return "";
  constexpr auto kRight = Align::right;
  Table table({{"routine"},
               {"bytes", kRight},
               {"calls", kRight},
               {"min", kRight},
               {"mean", kRight},
               {"max", kRight},
               {"wait", kRight}});
  auto sorted = by_time(sizes);
  const auto left_out = sorted.size() - std::min(sorted.size(), rows);
  sorted.resize(sorted.size() - left_out);
  for (const auto& [size, totals] : sorted)
    table.add({short_name(size.routine), fmt::format("{}", size.bytes),
               fmt::format("{}", totals.calls), time_cell(totals, totals.shortest_ns),
               human_ns(totals.total_ns / static_cast<double>(totals.calls)),
               time_cell(totals, totals.longest_ns), wait_share(totals, profile.clock_error_ns)});
  auto text = "\n" + table.text(0);
  if (left_out > 0) text += fmt::format("({} more sizes; --rows shows them)\n", left_out);
  return text;
}

std::string phase_lines(const Profile& profile) {
  std::string text;
  for (const auto& phase : profile.phases) {
    std::string pattern;
    for (const auto& call : phase.pattern) {
      if (pattern.size() > 120) {
        pattern += ", ...";
        break;
      }
      pattern += fmt::format(
          "{}{}{}{}", pattern.empty() ? "" : ", ",
          call.calls > 1 ? fmt::format("{} x ", call.calls) : "", short_name(call.routine),
          phase.sizes_vary || call.bytes == 0 ? "" : fmt::format(" {}", human_bytes(call.bytes)));
    }
    text += wrapped(fmt::format("{} rounds of {}, {:.0f}% of it in these calls (95% below {}, "
                                "longest {}): {}{}",
                                phase.rounds, human_ns(phase.mean_ns),
                                100 * phase.in_calls_ns / std::max(1.0, phase.mean_ns),
                                human_ns(phase.p95_ns), human_ns(phase.longest_ns), pattern,
                                phase.sizes_vary ? ", sizes vary" : ""),
                    80, 2) +
            '\n';
  }
  return text.empty() ? "" : "\n" + text;
}

std::string late_lines(const Profile& profile) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, profile.late_senders.size()); ++i) {
    const auto& late = profile.late_senders[i];
    text += wrapped(fmt::format("late sender: rank {} let rank {} wait {} in {} of {} receives",
                                late.sender, late.receiver, human_ns(late.waited_ns), late.late,
                                late.messages),
                    80, 2) +
            '\n';
  }
  return text;
}

/// What it costs to look, and what is too short to be looked at.
std::string cost_line(const Profile& profile) {
  if (profile.own_cost_ns <= 0) return "";
  std::string names;
  for (const auto& [routine, totals] : profile.routines)
    if (is_too_short(totals, profile.own_cost_ns))
      names += (names.empty() ? "" : ", ") + short_name(routine);
  return wrapped(fmt::format("The profiler adds {:.0f} ns to a call{}.", profile.own_cost_ns,
                             names.empty() ? "" : "; too short to be timed well: " + names)) +
         '\n';
}

std::string rank_table(const Profile& profile) {
  constexpr std::size_t kMost = 16;
  constexpr auto kRight = Align::right;
  Table table({{"rank", kRight},
               {"host"},
               {"calls", kRight},
               {"sent", kRight},
               {"received", kRight},
               {"in calls", kRight},
               {"elapsed", kRight},
               {"wait", kRight}});
  for (std::size_t i = 0; i < std::min(kMost, profile.ranks.size()); ++i) {
    const auto& rank = profile.ranks[i];
    const auto calls = trace::communicating_calls(rank);
    table.add({rank.rank >= 0 ? fmt::format("{}", rank.rank) : "-", rank.host.substr(0, 16),
               calls > 0 ? fmt::format("{}", calls) : "-", bytes_cell(rank.all.sent),
               bytes_cell(rank.all.received), human_ns(rank.communication_ns),
               human_ns(rank.elapsed_ns), wait_share(rank.all, profile.clock_error_ns)});
  }
  auto text = "\n" + table.text(0);
  if (profile.ranks.size() > kMost)
    text += fmt::format("({} more ranks; --json has them)\n", profile.ranks.size() - kMost);
  return text;
}

Json json_of(const Totals& totals) {
  Json json{
      {"calls", totals.calls},
      {"sent_bytes", totals.sent},
      {"received_bytes", totals.received},
      {"total_ns", totals.total_ns},
      {"min_ns", totals.shortest_ns},
      {"mean_ns", totals.calls == 0 ? 0 : totals.total_ns / static_cast<double>(totals.calls)},
      {"max_ns", totals.longest_ns}};
  if (totals.in_flight_ns > 0) {
    json["in_flight_ns"] = totals.in_flight_ns;
    json["blocked_ns"] = totals.blocked_ns;
  }
  if (totals.resolved > 0) {
    json["compared_calls"] = totals.resolved;
    json["compared_ns"] = totals.resolved_ns;
    json["waited_ns"] = totals.waited_ns;
  }
  return json;
}

/// Messages have one, that may be 0.
bool has_tag(const ProfileKey& key) {
  return key.tag != 0 || key.routine.find("end") != std::string::npos ||
         key.routine.find("ecv") != std::string::npos;
}

Json json_of(const ProfileKey& key, const Totals& totals) {
  Json json{{"routine", key.routine},
            {"communicator", key.communicator},
            {"bytes", key.bytes},
            {"peer", key.peer}};
  if (has_tag(key)) json["tag"] = key.tag;
  if (!key.label.empty()) json["label"] = key.label;
  if (!key.region.empty()) json["region"] = key.region;
  json.update(json_of(totals));
  return json;
}

Json json_of(const report::Finding& finding) {
  Json evidence = Json::array();
  for (const auto& [name, value, unit] : finding.evidence)
    evidence.push_back({{"name", name}, {"value", value}, {"unit", unit}});
  return {
      {"id", finding.id},
      {"claim", finding.claim},
      {"arithmetic", finding.arithmetic},
      {"evidence", evidence},
      {"confidence", finding.confidence == report::Confidence::measured ? "measured" : "inferred"},
      {"advice", finding.advice},
      {"command", finding.command}};
}

Json json_of(const trace::Phase& phase) {
  Json json{{"rounds", phase.rounds},          {"calls", phase.calls},
            {"sizes_vary", phase.sizes_vary},  {"begin_ns", phase.begin_ns},
            {"mean_ns", phase.mean_ns},        {"median_ns", phase.median_ns},
            {"p95_ns", phase.p95_ns},          {"longest_ns", phase.longest_ns},
            {"in_calls_ns", phase.in_calls_ns}};
  auto& pattern = json["pattern"] = Json::array();
  for (const auto& call : phase.pattern)
    pattern.push_back({{"routine", call.routine},
                       {"bytes", call.bytes},
                       {"calls", call.calls},
                       {"min_ns", call.shortest_ns},
                       {"mean_ns", call.mean_ns},
                       {"max_ns", call.longest_ns}});
  constexpr std::size_t kMostRounds = 10'000;
  if (phase.rounds_ns.size() <= kMostRounds) json["rounds_ns"] = phase.rounds_ns;
  return json;
}

}  // namespace

std::string profile_text(const Profile& profile, std::size_t rows) {
  if (profile.ranks.empty()) return "";
  const auto& first = profile.ranks.front();
  const auto made_by =
      profile.source.empty() ? first.mpi : fmt::format("imported from {}", profile.source);
  auto text = fmt::format("{} {}, {}\n\n", profile.ranks.size(),
                          profile.ranks.size() == 1 ? "rank" : "ranks", made_by);
  text += routine_table(profile) + local_line(profile);
  text += size_table(profile, rows) + rank_table(profile);
  text += phase_lines(profile) + late_lines(profile);
  text += '\n' + wrapped(profile.source.empty() ? kMeasured : kImported) + '\n';
  if (profile.clock_error_ns > 0)
    text += wrapped(fmt::format("Arrivals are compared to {}{}.", human_ns(profile.clock_error_ns),
                                profile.clock_offset_ns > 0
                                    ? fmt::format("; clocks of hosts differ by up to {}",
                                                  human_ns(profile.clock_offset_ns))
                                    : "")) +
            '\n';
  text += cost_line(profile);
  for (const auto& warning : profile.warnings) text += wrapped("note: " + warning, 80, 6) + '\n';
  return text;
}

std::string profile_json(const Profile& profile) {
  Json json{{"schema", "sinew-profile"}, {"version", 1}, {"sinew", SINEW_VERSION}};
  if (!profile.source.empty()) json["source"] = profile.source;
  auto& ranks = json["ranks"] = Json::array();
  for (const auto& rank : profile.ranks) {
    Json entry{{"rank", rank.rank},
               {"size", rank.size},
               {"process", rank.process},
               {"ended_in_order", rank.closed},
               {"elapsed_ns", rank.elapsed_ns},
               {"communication_ns", rank.communication_ns}};
    for (const auto& [key, value] : rank.info)
      if (!entry.contains(key)) entry[key] = value;
    entry.update(json_of(rank.all));
    ranks.push_back(std::move(entry));
  }
  auto& communicators = json["communicators"] = Json::array();
  for (const auto& [id, info] : profile.communicators)
    communicators.push_back(
        {{"id", id}, {"name", info.name}, {"size", info.size}, {"members", info.members}});
  auto& routines = json["routines"] = Json::array();
  for (const auto& [routine, totals] : by_time(profile.routines)) {
    Json entry{{"routine", routine}};
    entry.update(json_of(totals));
    entry["by_rank_ns"] = profile.time_by_rank.at(routine);
    if (const auto waited = profile.waited_by_rank.find(routine);
        waited != profile.waited_by_rank.end())
      entry["waited_by_rank_ns"] = waited->second;
    routines.push_back(std::move(entry));
  }
  auto& rows = json["rows"] = Json::array();
  for (const auto& [key, totals] : by_time(profile.rows)) rows.push_back(json_of(key, totals));
  auto& late = json["late_senders"] = Json::array();
  for (const auto& pair : profile.late_senders)
    late.push_back({{"sender", pair.sender},
                    {"receiver", pair.receiver},
                    {"receives", pair.messages},
                    {"late", pair.late},
                    {"waited_ns", pair.waited_ns}});
  auto& phases = json["phases"] = Json::array();
  for (const auto& phase : profile.phases) phases.push_back(json_of(phase));
  json["own_cost_ns"] = profile.own_cost_ns;
  json["clock_error_ns"] = profile.clock_error_ns;
  json["clock_offset_ns"] = profile.clock_offset_ns;
  json["greatest_stride"] = profile.greatest_stride;
  json["warnings"] = profile.warnings;
  auto& findings = json["findings"] = Json::array();
  for (const auto& finding : report::find_all(profile)) findings.push_back(json_of(finding));
  return json.dump(1) + "\n";
}

}  // namespace sinew
