#include "report/training_findings.hpp"

#include <algorithm>

#include "report/mpitrace_text.hpp"

namespace sinew::report {
namespace {

using trace::Profile;
using trace::RankProfile;
using trace::Totals;

constexpr std::uint64_t kSmallBytes = 64;        // a few words: flags, a bit vector, a loss
constexpr std::uint64_t kWorkBytes = 1024;       // below it nobody sends gradients
constexpr std::uint64_t kGradientBytes = 65536;  // a model whose gradients are less fits no worry
constexpr std::uint64_t kManyCalls = 100;

/// The first rank whose calls are known.
const RankProfile* rank_with_calls(const Profile& profile) {
  for (const auto& rank : profile.ranks)
    if (!rank.rows.empty()) return &rank;
  return nullptr;
}

bool is_allreduce(std::string_view routine) {
  return routine.starts_with("MPI_Allreduce") || routine.starts_with("MPI_Iallreduce");
}

/// The allreduces of a rank by size.
std::map<std::uint64_t, Totals> allreduces_of(const RankProfile& rank) {
  std::map<std::uint64_t, Totals> sizes;
  for (const auto& [key, totals] : rank.rows)
    if (is_allreduce(key.routine)) sizes[key.bytes].add(totals);
  return sizes;
}

using Size = std::pair<const std::uint64_t, Totals>;

/// The small size that is called most.
const Size* smallest_talk(const std::map<std::uint64_t, Totals>& sizes) {
  const Size* found = nullptr;
  for (const auto& size : sizes)
    if (size.first > 0 && size.first <= kSmallBytes &&
        (found == nullptr || size.second.calls > found->second.calls))
      found = &size;
  return found;
}

int ranks_of(const Profile& profile) {
  return std::max(profile.ranks.front().size, static_cast<int>(profile.ranks.size()));
}

/// Nanoseconds of the longest rank.
double elapsed_of(const Profile& profile) {
  double longest = 0;
  for (const auto& rank : profile.ranks) longest = std::max(longest, rank.elapsed_ns);
  return longest;
}

}  // namespace

double Polling::per_step() const {
  return static_cast<double>(small_calls) / static_cast<double>(steps);
}

double Polling::mean_ns() const { return small_ns / static_cast<double>(small_calls); }

std::optional<Polling> find_polling(const Profile& profile) {
  constexpr double kFewPerStep = 4;  // losses and metrics are reduced too
  const auto* const rank = rank_with_calls(profile);
  if (rank == nullptr) return {};
  const auto sizes = allreduces_of(*rank);
  const auto* const small = smallest_talk(sizes);
  if (small == nullptr || small->second.calls < kManyCalls) return {};
  Polling found;
  found.rank = rank->rank;
  found.ranks = ranks_of(profile);
  found.small_bytes = small->first;
  found.small_calls = small->second.calls;
  found.small_ns = small->second.total_ns;
  found.elapsed_ns = rank->elapsed_ns;
  std::uint64_t most_moved = 0;
  for (const auto& [bytes, totals] : sizes) {
    found.all_ns += totals.total_ns;
    if (bytes < kWorkBytes) continue;
    found.work_calls += totals.calls;
    found.work_bytes += totals.bytes;
    if (totals.bytes > most_moved) {
      most_moved = totals.bytes;
      found.steps = totals.calls;
    }
  }
  if (found.steps == 0 || found.per_step() < kFewPerStep) return {};
  for (const auto& [bytes, totals] : sizes)
    if (bytes >= kWorkBytes && totals.calls == found.steps && found.next_bytes == 0) {
      found.next_bytes = bytes;
      found.next_mean_ns = totals.total_ns / static_cast<double>(totals.calls);
    }
  found.quickest_ns = small->second.shortest_ns;
  if (small->second.resolved_ns > 0)
    found.waited_share = small->second.waited_ns / small->second.resolved_ns;
  return found;
}

std::optional<DataElsewhere> find_data_elsewhere(const Profile& profile) {
  const auto* const rank = rank_with_calls(profile);
  if (rank == nullptr) return {};
  const auto sizes = allreduces_of(*rank);
  const auto* const small = smallest_talk(sizes);
  if (small == nullptr || small->second.calls < kManyCalls) return {};
  DataElsewhere found;
  found.rank = rank->rank;
  found.ranks = ranks_of(profile);
  found.small_bytes = small->first;
  found.small_calls = small->second.calls;
  found.small_ns = small->second.total_ns;
  found.elapsed_ns = rank->elapsed_ns;
  for (const auto& [key, totals] : rank->rows) {
    found.all_bytes += totals.bytes;
    if (key.bytes < found.largest_bytes) continue;
    found.largest_bytes = key.bytes;
    found.largest_routine = key.routine;
  }
  if (found.largest_bytes >= kGradientBytes) return {};
  return found;
}

std::optional<OutOfStep> find_out_of_step(const Profile& profile) {
  constexpr double kNotable = 0.05;  // of the elapsed time
  if (profile.ranks.size() < 2) return {};
  const auto chosen = communication_ranks(profile.ranks);
  OutOfStep found;
  found.ranks = static_cast<int>(profile.ranks.size());
  found.least = chosen.least;
  found.median = chosen.median;
  found.most = chosen.most;
  const auto time_of = [&](int number) {
    for (const auto& rank : profile.ranks)
      if (rank.rank == number) return rank.communication_ns;
    return 0.0;
  };
  found.least_ns = time_of(chosen.least);
  found.median_ns = time_of(chosen.median);
  found.most_ns = time_of(chosen.most);
  found.elapsed_ns = elapsed_of(profile);
  for (const auto& rank : profile.ranks) found.waited_ns += rank.communication_ns - found.least_ns;
  if (!(found.most_ns - found.least_ns > kNotable * found.elapsed_ns)) return {};
  return found;
}

std::optional<LastReady> find_last_ready(const Profile& profile) {
  constexpr std::uint64_t kFew = 10;
  if (profile.ranks.empty()) return {};
  LastReady found;
  for (const auto& [key, value] : profile.ranks.front().info) {
    constexpr std::string_view kPrefix = "last_ready_";
    if (!key.starts_with(kPrefix)) continue;
    const auto times =
        static_cast<std::uint64_t>(trace::info_number(profile.ranks.front(), key).value_or(0));
    found.negotiations += times;
    if (times <= found.times) continue;
    found.times = times;
    found.rank = std::atoi(key.c_str() + kPrefix.size());
  }
  for (const auto& [routine, totals] : profile.routines)
    if (routine.starts_with("NEGOTIATE_")) {
      found.waited_ns += totals.waited_ns;
      found.negotiated_ns += totals.resolved_ns;
    }
  if (found.negotiations < kFew || found.times * 2 < found.negotiations) return {};
  return found;
}

}  // namespace sinew::report
