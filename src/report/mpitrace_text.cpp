#include "report/mpitrace_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "report/mpitrace_order.hpp"

namespace sinew::report {
namespace {

using trace::Profile;
using trace::ProfileKey;
using trace::RankProfile;
using trace::Totals;

struct Line {
  std::uint64_t calls = 0;
  double bytes = 0, time_ns = 0;
};

struct ByOrder {
  bool operator()(const std::string& a, const std::string& b) const {
    return std::tuple(mpitrace_order(a), std::string_view(a)) <
           std::tuple(mpitrace_order(b), std::string_view(b));
  }
};
struct Routine {
  Line all;
  std::map<unsigned, Line> bins;
};
using Routines = std::map<std::string, Routine, ByOrder>;

double as_double(std::uint64_t number) { return static_cast<double>(number); }

/// The size of one call of a row by mpitrace's rules, which differ from ours for these routines: an
/// exchange counts both ways, an all-to-all of vectors what goes to one rank in the mean.
double mpitrace_bytes(const Profile& profile, const ProfileKey& key, const Totals& totals) {
  const double mean = as_double(totals.bytes) / as_double(totals.calls);
  const std::string_view routine = key.routine;
  if (routine.starts_with("MPI_Sendrecv"))
    return mean + as_double(totals.received) / as_double(totals.calls);
  if (routine.starts_with("MPI_Alltoallv") || routine.starts_with("MPI_Alltoallw") ||
      routine.starts_with("MPI_Ialltoallv") || routine.starts_with("MPI_Ialltoallw")) {
    const auto group = profile.communicators.find(key.communicator);
    if (group != profile.communicators.end() && group->second.size > 0)
      return as_double(static_cast<std::uint64_t>(mean) /
                       static_cast<std::uint64_t>(group->second.size));
  }
  return mean;
}

/// mpitrace lists local calls, too, and not what begins and ends MPI.
bool is_listed(std::string_view routine) {
  constexpr std::string_view kNever[] = {
      "MPI_Init",     "MPI_Init_thread",  "MPI_Finalize",         "MPI_Abort",
      "MPI_Pcontrol", "MPI_Session_init", "MPI_Session_finalize", "step"};
  return std::find(std::begin(kNever), std::end(kNever), routine) == std::end(kNever);
}

Routines routines_of(const Profile& profile, const RankProfile& rank) {
  Routines routines;
  for (const auto& [name, totals] : rank.routines)
    if (is_listed(name))
      routines[name].all = {totals.calls, as_double(totals.bytes), totals.total_ns};
  for (const auto& [key, totals] : rank.rows) {
    const auto found = routines.find(key.routine);
    if (found == routines.end() || totals.calls == 0) continue;
    const double bytes = mpitrace_bytes(profile, key, totals);
    auto& bin = found->second.bins[mpitrace_bin(static_cast<std::uint64_t>(bytes))];
    bin.calls += totals.calls;
    bin.bytes += bytes * as_double(totals.calls);
    bin.time_ns += totals.total_ns;
    // The sum of a routine may be known better than its rows are.
    found->second.all.bytes += bytes * as_double(totals.calls) - as_double(totals.bytes);
  }
  return routines;
}

std::string dashes(std::size_t columns) { return std::string(columns, '-') + '\n'; }

double mean_bytes(const Line& line) { return line.bytes / as_double(line.calls); }

std::string flat_table(const RankProfile& rank, const Routines& routines, MpitraceLayout layout) {
  const bool older = layout == MpitraceLayout::older;
  auto text = fmt::format("Data for MPI rank {} of {}:\n{} from MPI_Init() to MPI_Finalize().\n",
                          rank.rank, rank.size, older ? "Times and statistics" : "Times");
  text += dashes(71);
  text += fmt::format("{:<28} {:>12}    {:>11}   {:>12}\n", "MPI Routine", "#calls", "avg. bytes",
                      "time(sec)");
  text += dashes(71);
  for (const auto& [name, routine] : routines)
    text += fmt::format("{:<28} {:>12}    {:>11.1f}   {:>12.3f}\n", name, routine.all.calls,
                        mean_bytes(routine.all), routine.all.time_ns / 1e9);
  return text + dashes(older ? 65 : 71);
}

std::string place_lines(const RankProfile& rank, const CommunicationRanks& chosen) {
  std::string text;
  const auto had = [&](int who, const char* what) {
    if (rank.rank == who)
      text += fmt::format("MPI task {} of {} had the {} communication time.\n", rank.rank,
                          rank.size, what);
  };
  had(chosen.least, "minimum");
  had(chosen.most, "maximum");
  had(chosen.median, "median");
  return text;
}

std::optional<double> resident_mib(const RankProfile& rank) {
  const auto kib = trace::info_number(rank, "resident_kib");
  return kib ? std::optional(*kib / 1024) : std::nullopt;
}

/// What was not measured has no line.
std::string rank_lines(const RankProfile& rank, const Routines& routines, const char* memory_unit) {
  const auto line = [](const char* what, std::optional<double> value, const char* unit) {
    return value ? fmt::format("{:<24} = {:.3f} {}.\n", what, *value, unit) : std::string();
  };
  auto text = line("total communication time", rank.communication_ns / 1e9, "seconds");
  text += line("total elapsed time", rank.elapsed_ns / 1e9, "seconds");
  text += line("user cpu time", trace::info_number(rank, "user_s"), "seconds");
  text += line("system time", trace::info_number(rank, "system_s"), "seconds");
  text += line("max resident set size", resident_mib(rank), memory_unit);
  double in_files_ns = 0;
  bool uses_files = false;
  for (const auto& [name, routine] : routines)
    if (name.starts_with("MPI_File_")) {
      uses_files = true;
      in_files_ns += routine.all.time_ns;
    }
  if (uses_files) text += fmt::format("\ntotal MPI-IO time = {:.3f} seconds.\n", in_files_ns / 1e9);
  return text + '\n';
}

std::string size_tables(const Routines& routines) {
  auto text = dashes(65) + "Message size distributions:\n\n";
  for (const auto& [name, routine] : routines) {
    if (routine.all.bytes <= 0) continue;
    text += fmt::format("{:<22}    #calls    avg. bytes      time(sec)\n", name);
    for (const auto& [bin, line] : routine.bins)
      text += fmt::format("{:>32}   {:>11.1f}   {:>12.3f}\n", line.calls, mean_bytes(line),
                          line.time_ns / 1e9);
    text += '\n';
  }
  return text;
}

const RankProfile& rank_with(const Profile& all, int number) {
  return *std::find_if(all.ranks.begin(), all.ranks.end(),
                       [&](const RankProfile& rank) { return rank.rank == number; });
}

/// Which ranks used the most memory and time.
std::string largest_lines(const Profile& all, const char* indent, const char* memory_unit) {
  const auto by_memory = [](const RankProfile& a, const RankProfile& b) {
    return resident_mib(a).value_or(-1) < resident_mib(b).value_or(-1);
  };
  const auto by_time = [](const RankProfile& a, const RankProfile& b) {
    return a.elapsed_ns < b.elapsed_ns;
  };
  const auto memory = std::max_element(all.ranks.begin(), all.ranks.end(), by_memory);
  const auto time = std::max_element(all.ranks.begin(), all.ranks.end(), by_time);
  std::string text;
  if (const auto mib = resident_mib(*memory))
    text += fmt::format("{}Rank {} reported the largest memory utilization : {:.2f} {}\n", indent,
                        memory->rank, *mib, memory_unit);
  return text + fmt::format("{}Rank {} reported the largest elapsed time : {:.2f} sec\n", indent,
                            time->rank, time->elapsed_ns / 1e9);
}

std::string communication_lines(const Profile& all, const CommunicationRanks& chosen) {
  const auto line = [&](const char* which, int rank) {
    return fmt::format("  {:<7} communication time = {:.3f} sec for task {}\n", which,
                       rank_with(all, rank).communication_ns / 1e9, rank);
  };
  return line("minimum", chosen.least) + line("median", chosen.median) +
         line("maximum", chosen.most);
}

/// How many ranks spent how long, for jobs whose table nobody reads.
std::string histogram(const Profile& all, const CommunicationRanks& chosen) {
  constexpr std::size_t kMostRanksWithout = 32, kBins = 15;
  if (all.ranks.size() <= kMostRanksWithout) return "";
  const double least = rank_with(all, chosen.least).communication_ns;
  const double width = (rank_with(all, chosen.most).communication_ns - least) / (kBins - 1);
  std::array<int, kBins> ranks{};
  for (const auto& rank : all.ranks) {
    const double at = width > 0 ? (rank.communication_ns - least) / width + 0.5 : 0;
    ++ranks[std::min(kBins - 1, static_cast<std::size_t>(std::max(0.0, at)))];
  }
  std::string text = "Histogram of times spent in MPI\n    time-bin    #ranks\n";
  for (std::size_t i = 0; i < kBins; ++i)
    text += fmt::format("{:>12.3f}  {:>8}\n", (least + as_double(i) * width) / 1e9, ranks[i]);
  return text + "\n\n";
}

/// "-" stands for what was not measured.
std::string rank_table(const Profile& all, MpitraceLayout layout) {
  const bool older = layout == MpitraceLayout::older;
  std::size_t width = older ? 14 : 4;
  for (const auto& rank : all.ranks) width = std::max(width, rank.host.size());
  const auto cell = [](std::optional<double> value, int decimals) {
    return value ? fmt::format("{:.{}f}", *value, decimals) : std::string("-");
  };
  auto text =
      older ? fmt::format("MPI timing summary for all ranks:\ntaskid {:>{}}    ", "hostname", width)
            : fmt::format("MPI timing summary for all ranks:\ntaskid {:>{}}    cpu   ", "host",
                          width);
  text += fmt::format(" comm(s)  elapsed(s)     user(s)   system(s)   {:>9}    switches\n",
                      older ? "size(MB)" : "size(MiB)");
  for (const auto& rank : all.ranks) {
    text += fmt::format("{:>6} {:>{}}", rank.rank, rank.host, width);
    if (!older) text += fmt::format(" {:>6}", cell(trace::info_number(rank, "cpu"), 0));
    text += fmt::format(" {:>10.2f}  {:>10.2f}  {:>10}  {:>10}  {:>10}  {:>10}\n",
                        rank.communication_ns / 1e9, rank.elapsed_ns / 1e9,
                        cell(trace::info_number(rank, "user_s"), 2),
                        cell(trace::info_number(rank, "system_s"), 2), cell(resident_mib(rank), 2),
                        cell(trace::info_number(rank, "switches"), 0));
  }
  return text;
}

}  // namespace

CommunicationRanks communication_ranks(std::span<const RankProfile> ranks) {
  if (ranks.empty()) return {};
  std::vector<const RankProfile*> sorted;
  for (const auto& rank : ranks) sorted.push_back(&rank);
  std::stable_sort(sorted.begin(), sorted.end(), [](const RankProfile* a, const RankProfile* b) {
    return a->communication_ns < b->communication_ns;
  });
  return {sorted.front()->rank, sorted[(sorted.size() - 1) / 2]->rank, sorted.back()->rank};
}

std::vector<int> ranks_with_files(const CommunicationRanks& chosen) {
  std::vector<int> ranks{0, chosen.least, chosen.median, chosen.most};
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

unsigned mpitrace_bin(std::uint64_t bytes) noexcept {
  if (bytes <= 4) return bytes == 0 ? 0 : 1;
  return static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;
}

std::string mpitrace_text(const Profile& all, const RankProfile& rank,
                          const CommunicationRanks& chosen, MpitraceLayout layout) {
  const bool older = layout == MpitraceLayout::older;
  const char* const memory_unit = older ? "MBytes" : "MiB";
  const auto routines = routines_of(all, rank);
  auto text = flat_table(rank, routines, layout) + place_lines(rank, chosen) +
              rank_lines(rank, routines, memory_unit);
  const bool sums_up = rank.rank == 0 && !all.ranks.empty();
  if (older && sums_up) text += largest_lines(all, "", memory_unit) + '\n';
  text += size_tables(routines);
  if (!sums_up) return text;
  text += dashes(65);
  text += older ? "\nCommunication summary for all tasks:\n\n"
                : "\nSummary for all tasks:\n\n" + largest_lines(all, "  ", memory_unit) + '\n';
  text += communication_lines(all, chosen) + "\n\n";
  return text + (older ? "" : histogram(all, chosen)) + rank_table(all, layout);
}

std::string mpitrace_file_name(const std::string& job, int rank) {
  return fmt::format("mpi_profile.{}.{}", job, rank);
}

}  // namespace sinew::report
