// mpiP's report. Tables are known by the title between "@---" and dashes; names come without MPI_.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include <sinew/error.hpp>
#include "imports/readers.hpp"

namespace sinew::imports {
namespace {

using trace::Profile;
using trace::ProfileKey;
using trace::RankProfile;
using trace::Totals;
using Words = std::vector<std::string_view>;

enum class Part { nothing, times, aggregate_times, aggregate_sent, site_times, site_sent };

struct Site {
  std::string routine;
  std::uint64_t number = 0;
  friend auto operator<=>(const Site&, const Site&) = default;  // NOLINT(modernize-use-nullptr)
};

class Reader {
 public:
  explicit Reader(const Source& source) : at_(source) {}
  Profile read();

 private:
  void title();
  void row(const Words& words);
  void add_time(const Words& words);
  void add_site_time(const Words& words);
  void add_site_sent(const Words& words);
  void add_aggregate(const Words& words);
  void doubt(std::string_view why);
  [[nodiscard]] std::optional<Site> site_of(const Words& words) const;
  RankProfile& rank(int number);
  void put_aggregates();
  void sum_up(Profile& profile);

  Lines at_;
  Part part_ = Part::nothing;
  std::map<int, RankProfile> ranks_;
  std::map<std::pair<int, Site>, Totals> sites_;
  std::map<Site, Totals> aggregates_;  // over all ranks
  std::string command_;
  std::vector<std::string> warnings_;
};

void Reader::doubt(std::string_view why) {
  constexpr std::size_t kMost = 20;
  if (warnings_.size() < kMost) warnings_.push_back(at_.complaint(why));
}

RankProfile& Reader::rank(int number) {
  auto& found = ranks_[number];
  found.rank = number;
  return found;
}

// "@--- MPI Time (seconds) -----", "@ MPI Task Assignment      : 0 host", "@ Command : ./program"
void Reader::title() {
  const auto line = at_.line();
  const auto begins = [&](std::string_view text) { return line.starts_with(text); };
  if (begins("@---")) {
    part_ = begins("@--- MPI Time")                     ? Part::times
            : begins("@--- Aggregate Time")             ? Part::aggregate_times
            : begins("@--- Aggregate Sent Message")     ? Part::aggregate_sent
            : begins("@--- Callsite Time statistics")   ? Part::site_times
            : begins("@--- Callsite Message Sent stat") ? Part::site_sent
                                                        : Part::nothing;
    return;
  }
  const auto colon = line.find(": ");
  if (colon == std::string_view::npos) return;
  if (begins("@ Command")) command_ = line.substr(colon + 2);
  if (!begins("@ MPI Task Assignment")) return;
  const auto words = words_of(line.substr(colon + 2));
  const auto number = rank_of(word(words, 0));
  if (!number) return doubt("which rank on which host?");
  if (words.size() > 1) rank(*number).host = words[1];
}

// "   0       10.2       3.51    34.41"; the line that begins with * is their sum
void Reader::add_time(const Words& words) {
  if (words[0] == "*") return;
  const auto number = rank_of(words[0]);
  const auto app = number_of(word(words, 1));
  const auto mpi = number_of(word(words, 2));
  if (!number || !app || !mpi || *app < 0 || *mpi < 0)
    return doubt("is no line 'task, AppTime, MPITime'; left out");
  auto& found = rank(*number);
  found.elapsed_ns = *app * 1e9;
  found.communication_ns = *mpi * 1e9;
}

std::optional<Site> Reader::site_of(const Words& words) const {
  const auto number = count_of(word(words, 1));
  if (!number) return {};
  const std::string name(words[0]);
  return Site{name.starts_with("MPI_") ? name : "MPI_" + name, *number};
}

// "Allreduce  3  0  236  18.9  17.2  16.0  12.1  40.2": count, max, mean and min in milliseconds
void Reader::add_site_time(const Words& words) {
  if (words.size() > 2 && words[2] == "*") return;
  const auto site = site_of(words);
  const auto number = rank_of(word(words, 2));
  const auto calls = count_of(word(words, 3));
  std::optional<double> ms[3];
  for (std::size_t i = 0; i < 3 && words.size() > 6; ++i) ms[i] = number_of(words[4 + i]);
  if (!site || !number || !calls || *calls == 0 || !ms[0] || !ms[1] || !ms[2] || *ms[1] < 0)
    return doubt("is no line 'name, site, rank, count, max, mean, min'; left out");
  rank(*number);
  auto& totals = sites_[{*number, *site}];
  totals.calls = *calls;
  totals.total_ns = static_cast<double>(*calls) * *ms[1] * 1e6;
  totals.longest_ns = *ms[0] * 1e6;
  totals.shortest_ns = *ms[2] * 1e6;
}

// "Allreduce  3  0  236  4.719e+06  4.719e+06  4.719e+06  1.114e+09": count, max, mean, min, sum
void Reader::add_site_sent(const Words& words) {
  if (words.size() > 2 && words[2] == "*") return;
  const auto site = site_of(words);
  const auto number = rank_of(word(words, 2));
  const auto calls = count_of(word(words, 3));
  const auto mean = number_of(word(words, 5));
  if (!site || !number || !calls || *calls == 0 || !mean)
    return doubt("is no line 'name, site, rank, count, max, mean, min, sum'; left out");
  const auto bytes = total_bytes(*calls, *mean);
  if (!bytes) return doubt("more bytes than there can be; left out");
  rank(*number);
  auto& totals = sites_[{*number, *site}];
  if (totals.calls == 0) totals.calls = *calls;
  totals.sent = totals.bytes = *bytes;
}

// Time: "Allreduce  3  8.12e+03  39.8  80.1  [count]  0.02"; sent: "Allreduce  3  472  2.2e+09 ..."
void Reader::add_aggregate(const Words& words) {
  const auto site = site_of(words);
  const auto value = number_of(word(words, part_ == Part::aggregate_sent ? 3 : 2));
  if (!site || !value || *value < 0) return doubt("is no line of an aggregate table; left out");
  auto& totals = aggregates_[*site];
  if (part_ == Part::aggregate_times) {
    totals.total_ns = *value * 1e6;
    const auto calls = count_of(word(words, 5));
    if (calls) totals.calls = *calls;
    return;
  }
  if (const auto calls = count_of(words[2])) totals.calls = *calls;
  const auto bytes = total_bytes(1, *value);
  if (bytes) totals.sent = totals.bytes = *bytes;
}

void Reader::row(const Words& words) {
  const auto first = words[0];
  if (first == "Task" || first == "Call" || first == "Name") return;  // headings
  if (first.find_first_not_of('-') == std::string_view::npos) return;
  switch (part_) {
    case Part::times:
      return add_time(words);
    case Part::aggregate_times:
    case Part::aggregate_sent:
      return add_aggregate(words);
    case Part::site_times:
      return add_site_time(words);
    case Part::site_sent:
      return add_site_sent(words);
    case Part::nothing:
      return;
  }
}

// A concise report has sums over all ranks only. They count as rank 0's, and a warning says so.
void Reader::put_aggregates() {
  if (!sites_.empty() || aggregates_.empty()) return;
  const int first = ranks_.begin()->first;
  bool counted = true;
  for (auto& [site, totals] : aggregates_) {
    counted &= totals.calls > 0;
    totals.calls = std::max<std::uint64_t>(totals.calls, 1);
    sites_[{first, site}] = totals;
  }
  warnings_.push_back(fmt::format(
      "a concise report: calls of all ranks are shown as those of rank {}; only its twenty longest "
      "call sites are there{}",
      first, counted ? "" : ", some without a count (shown as 1)"));
}

void Reader::sum_up(Profile& profile) {
  for (const auto& [where, totals] : sites_) {
    const auto& [number, site] = where;
    ProfileKey key;
    key.routine = site.routine;
    key.bytes = totals.calls == 0 ? 0 : totals.bytes / totals.calls;
    key.label = fmt::format("site {}", site.number);
    auto& found = ranks_[number];
    found.rows[key].add(totals);
    found.routines[key.routine].add(totals);
    found.all.add(totals);
  }
  const int size = ranks_.rbegin()->first + 1;
  for (auto& [number, found] : ranks_) {
    found.size = size;
    found.command = command_;
    found.closed = true;
    found.info["producer"] = "mpip";
    profile.ranks.push_back(std::move(found));
  }
}

Profile Reader::read() {
  while (at_.next()) {
    if (at_.line().starts_with("@")) {
      title();
    } else if (const auto words = words_of(at_.line()); !words.empty()) {
      row(words);
    }
  }
  if (ranks_.empty())
    at_.fail("no table 'MPI Time (seconds)'; the report was cut off or is damaged");
  put_aggregates();
  if (sites_.empty()) at_.fail("no table of call sites; the report was cut off or is damaged");
  Profile profile;
  sum_up(profile);
  profile.warnings = std::move(warnings_);
  profile.warnings.emplace_back(
      "mpiP counts bytes that are sent, as a mean for each call site; what is received is not "
      "known");
  return profile;
}

}  // namespace

Profile read_mpip(std::span<const Source> sources) {
  if (sources.size() > 1)
    Lines(sources[1])
        .fail(fmt::format(
            "mpiP's report holds all ranks, and {} is one already; import one at a time",
            sources[0].name));
  return Reader(sources[0]).read();
}

}  // namespace sinew::imports
