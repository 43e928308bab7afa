// mpitrace's text. Widths and headings changed over the years, so that lines are known by their
// words, and tables by the words of their heading.
#include <fmt/format.h>

#include <map>

#include "imports/printed.hpp"
#include "imports/readers.hpp"

namespace sinew::imports {
namespace {

using trace::Profile;
using trace::ProfileKey;
using trace::RankProfile;
using trace::Totals;
using Words = std::vector<std::string_view>;

struct Rank {
  std::string file;  // that holds its routines; empty: only a line of the table of all ranks
  Printed communication, elapsed, user, system, resident_mib;
  std::optional<std::uint64_t> switches, cpu;
  std::string host;
  std::map<std::string, Totals> routines;
  std::map<ProfileKey, Totals> rows;
};

enum class Part { nothing, flat, sizes, ranks };

bool has(std::string_view line, std::string_view part) {
  return line.find(part) != std::string_view::npos;
}

class Reader {
 public:
  void read(const Source& source);
  Profile finish();

 private:
  void begin(const Lines& at, const Words& words);
  /// True when `line` opens, ends or stands outside a table.
  bool heading(const Lines& at, const Words& words);
  void row(const Lines& at, const Words& words);
  void add_routine(const Lines& at, const Words& words);
  void add_size(const Lines& at, const Words& words);
  void add_rank(const Lines& at, const Words& words);
  void see_value(const Lines& at, const Words& words);
  void see_largest(const Lines& at, const Words& words);
  void see_extreme(const Lines& at, const Words& words);
  void doubt(const Lines& at, std::string_view why);

  std::map<int, Rank> ranks_;
  int size_ = 0;
  Rank* current_ = nullptr;
  int current_number_ = -1;
  Part part_ = Part::nothing;
  std::string routine_;  // of the size table
  bool has_cpu_ = false;
  std::optional<int> longest_;  // the rank of which it was said
  bool synchronised_ = false;
  std::vector<std::string> warnings_;
  std::string file_;
};

void Reader::doubt(const Lines& at, std::string_view why) {
  constexpr std::size_t kMost = 20;
  if (warnings_.size() < kMost) warnings_.push_back(at.complaint(why));
}

// "Data for MPI rank 0 of 16:"
void Reader::begin(const Lines& at, const Words& words) {
  auto last = words.size() > 6 ? words[6] : "";
  if (last.ends_with(':')) last.remove_suffix(1);
  const auto rank = rank_of(word(words, 4));
  const auto size = rank_of(last);
  if (!rank || !size || *rank >= *size)
    at.fail("which rank of how many? 'Data for MPI rank 0 of 4:'");
  if (size_ != 0 && *size != size_)
    at.fail(
        fmt::format("this is of a job of {} ranks, what came before of one of {}; import the "
                    "files of one job at a time",
                    *size, size_));
  size_ = *size;
  current_ = &ranks_[*rank];
  current_number_ = *rank;
  if (!current_->file.empty())
    at.fail(fmt::format("rank {} a second time, after {}; import the files of one job at a time",
                        *rank, current_->file));
  current_->file = fmt::format("{}:{}", file_, at.number());
  part_ = Part::nothing;
}

bool Reader::heading(const Lines& at, const Words& words) {
  const auto line = at.line();
  if (words.empty() || line.find_first_not_of("- \t") == std::string_view::npos) {
    // Rules surround the heading of the flat table; after its first row one ends it.
    if (part_ == Part::flat && !words.empty() && !current_->routines.empty()) part_ = Part::nothing;
    return true;
  }
  if (has(line, "Profile data by communicator") || has(line, "Profile by call") ||
      has(line, "Histogram of times") || has(line, "ummary for all tasks")) {
    part_ = Part::nothing;
    return true;
  }
  if (line.starts_with("MPI Routine")) {
    part_ = current_->routines.empty() ? Part::flat : Part::nothing;
    return true;
  }
  if (line.starts_with("Message size distributions")) {
    part_ = Part::sizes;
    routine_.clear();
    return true;
  }
  if (part_ == Part::sizes && words.size() > 1 && words[1] == "#calls") {
    routine_ = words[0];
    return true;
  }
  if (words[0] == "taskid") {
    part_ = Part::ranks;
    has_cpu_ = words.size() > 2 && words[2] == "cpu";
    return true;
  }
  return has(line, "MPI timing summary") || line.starts_with("Times ");
}

/// "123  117124.9  0.018": calls, mean bytes, seconds. Nothing when it is not that.
std::optional<Totals> figures_of(std::span<const std::string_view> words) {
  if (words.size() != 3) return {};
  const auto calls = count_of(words[0]);
  const auto mean = number_of(words[1]);
  const auto seconds = number_of(words[2]);
  if (!calls || *calls == 0 || !mean || !seconds || *seconds < 0) return {};
  const auto bytes = total_bytes(*calls, *mean);
  if (!bytes) return {};
  Totals totals;
  totals.calls = *calls;
  totals.bytes = *bytes;
  totals.total_ns = *seconds * 1e9;
  return totals;
}

// "MPI_Bcast  123  117124.9  0.018"
void Reader::add_routine(const Lines& at, const Words& words) {
  const auto totals = figures_of(std::span(words).subspan(1));
  if (!totals) return doubt(at, "is no line 'routine, calls, mean bytes, seconds'; left out");
  current_->routines[std::string(words[0])] = *totals;
}

// "49  4.0  0.000"
void Reader::add_size(const Lines& at, const Words& words) {
  if (routine_.empty()) return;
  const auto totals = figures_of(words);
  if (!totals) return doubt(at, "is no line 'calls, mean bytes, seconds'; left out");
  ProfileKey key;
  key.routine = routine_;
  key.bytes = (totals->bytes + totals->calls / 2) / totals->calls;
  current_->rows[key].add(*totals);
}

// "0  host  [cpu]  comm(s)  elapsed(s)  user(s)  system(s)  size  switches"; "-" is not known.
void Reader::add_rank(const Lines& at, const Words& words) {
  const std::size_t figures = has_cpu_ ? 7 : 6;
  const auto rank = rank_of(word(words, 0));
  if (!rank || *rank >= size_ || words.size() < figures + 1 || words.size() > figures + 2)
    return doubt(at, "is no line of the table of ranks; left out");
  auto& entry = ranks_[*rank];
  const auto first = words.size() - 6;
  Printed* const seen[] = {&entry.communication, &entry.elapsed, &entry.user, &entry.system,
                           &entry.resident_mib};
  for (std::size_t i = 0; i < 5; ++i) {
    const auto value = number_of(words[first + i]);
    if (value && *value >= 0)
      seen[i]->see(*value, words[first + i]);
    else if (words[first + i] != "-")
      doubt(at, fmt::format("column {} is no number", first + i + 1));
  }
  entry.switches = count_of(words.back());
  if (has_cpu_) entry.cpu = count_of(words[first - 1]);
  if (words.size() == figures + 2) entry.host = words[1];
}

// "total communication time = 10.602 seconds."
void Reader::see_value(const Lines& at, const Words& words) {
  const auto line = at.line();
  struct Known {
    std::string_view begins;
    Printed* where;
  };
  for (const auto& [begins, where] :
       {Known{"total communication time", &current_->communication},
        Known{"total elapsed time", &current_->elapsed}, Known{"user cpu time", &current_->user},
        Known{"system time", &current_->system},
        Known{"max resident set size", &current_->resident_mib}}) {
    if (!line.starts_with(begins)) continue;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] != "=") continue;
      const auto value = number_of(words[i + 1]);
      if (value && *value >= 0) return where->see(*value, words[i + 1]);
    }
    return doubt(at, "no number after '='");
  }
  if (line.starts_with("synchronization time")) synchronised_ = true;
}

// "Rank 3 reported the largest memory utilization : 1873.82 MBytes"
void Reader::see_largest(const Lines& at, const Words& words) {
  const auto rank = rank_of(words[1]);
  const auto value = number_of(words[words.size() - 2]);
  if (!rank || *rank >= size_ || !value || *value < 0) return doubt(at, "which rank, how much?");
  const bool memory = has(at.line(), "memory");
  auto& entry = ranks_[*rank];
  (memory ? entry.resident_mib : entry.elapsed).see(*value, words[words.size() - 2]);
  if (!memory) longest_ = *rank;
}

// "minimum communication time = 10.602 sec for task 0"
void Reader::see_extreme(const Lines& at, const Words& words) {
  const auto rank = rank_of(words.back());
  const auto value = number_of(word(words, 4));
  if (!rank || *rank >= size_ || !value || *value < 0) return doubt(at, "which task, how long?");
  ranks_[*rank].communication.see(*value, words[4]);
}

void Reader::row(const Lines& at, const Words& words) {
  switch (part_) {
    case Part::flat:
      return add_routine(at, words);
    case Part::sizes:
      if (count_of(words[0])) return add_size(at, words);
      break;
    case Part::ranks:
      return add_rank(at, words);
    case Part::nothing:
      break;
  }
  const auto line = at.line();
  if (words[0] == "Rank" && words.size() > 1 && has(line, "reported the largest"))
    return see_largest(at, words);
  if (words.size() > 5 && words[1] == "communication" && has(line, "for task"))
    return see_extreme(at, words);
  see_value(at, words);
}

void Reader::read(const Source& source) {
  file_ = source.name;
  current_ = nullptr;
  Lines at(source);
  while (at.next()) {
    const auto words = words_of(at.line());
    if (at.line().starts_with("Data for MPI rank")) {
      begin(at, words);
    } else if (at.line().starts_with("```")) {
      part_ = Part::nothing;  // a listing in a page of Markdown ends
    } else if (current_ != nullptr && !heading(at, words)) {
      row(at, words);
    }
  }
  if (current_ == nullptr)
    at.fail("no line 'Data for MPI rank ... of ...:'; is it mpitrace's text?");
  if (current_->routines.empty())
    at.fail(fmt::format("rank {} has no table of routines; the file was cut off or is damaged",
                        current_number_));
}

Profile Reader::finish() {
  if (longest_) {
    auto& longest = ranks_[*longest_].elapsed;
    for (const auto& [number, rank] : ranks_)
      if (number != *longest_ && rank.elapsed.is_known()) longest.raise_above(rank.elapsed.value());
  }
  Profile profile;
  for (auto& [number, read] : ranks_) {
    RankProfile rank;
    rank.rank = number;
    rank.size = size_;
    rank.host = read.host;
    rank.closed = true;
    rank.info["producer"] = "mpitrace";
    rank.communication_ns = read.communication.value() * 1e9;
    rank.elapsed_ns = read.elapsed.value() * 1e9;
    if (read.user.is_known()) rank.info["user_s"] = text_of(read.user.value());
    if (read.system.is_known()) rank.info["system_s"] = text_of(read.system.value());
    if (read.resident_mib.is_known())
      rank.info["resident_kib"] = text_of(read.resident_mib.value() * 1024);
    if (read.switches) rank.info["switches"] = std::to_string(*read.switches);
    if (read.cpu) rank.info["cpu"] = std::to_string(*read.cpu);
    rank.rows = std::move(read.rows);
    for (auto& [routine, totals] : read.routines) {
      rank.all.add(totals);
      ProfileKey key;
      key.routine = routine;
      const bool listed = std::any_of(rank.rows.begin(), rank.rows.end(), [&](const auto& row) {
        return row.first.routine == key.routine;
      });
      if (!listed) rank.rows[key] = totals;
    }
    if (read.file.empty()) rank.all.total_ns = rank.communication_ns;
    rank.routines = std::move(read.routines);
    profile.ranks.push_back(std::move(rank));
  }
  profile.warnings = std::move(warnings_);
  profile.warnings.emplace_back(
      "mpitrace keeps sizes in classes from one power of two to the next: the sizes here are "
      "the mean of each class; sent and received are not told apart");
  if (synchronised_)
    profile.warnings.emplace_back("communication times include mpitrace's own barriers");
  return profile;
}

}  // namespace

Profile read_mpitrace(std::span<const Source> sources) {
  Reader reader;
  for (const auto& source : sources) reader.read(source);
  return reader.finish();
}

}  // namespace sinew::imports
