#include "imports/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>

namespace sinew::imports {
namespace {

using Json = nlohmann::json;

// The programs' names, and the collectives whose steps are all alike, so that times tell costs.
constexpr std::array kPrograms{
    std::pair{"all_reduce_perf", Collective::allreduce},
    std::pair{"all_gather_perf", Collective::allgather},
    std::pair{"reduce_scatter_perf", Collective::reduce_scatter},
    std::pair{"alltoall_perf", Collective::alltoall},
};

std::optional<Collective> named_in(std::string_view text) {
  for (const auto& [program, collective] : kPrograms)
    if (text.find(program) != std::string_view::npos) return collective;
  return std::nullopt;
}

Collective collective_of(const Source& source, std::string_view asked) {
  if (!asked.empty()) return parse_collective(asked);
  if (const auto named = named_in(source.text)) return *named;
  if (const auto named = named_in(source.name)) return *named;
  throw Error(Errc::invalid_argument,
              fmt::format("{}: which collective was timed? The text has none of all_reduce_perf, "
                          "all_gather_perf, reduce_scatter_perf and alltoall_perf; say it",
                          source.name));
}

void add(NcclTimes& times, double bytes, double out_of_place, double in_place) {
  const double us = out_of_place > 0 && in_place > 0 ? std::min(out_of_place, in_place)
                                                     : std::max(out_of_place, in_place);
  if (bytes > 0 && us > 0) times.rows.push_back({bytes, us});
}

double time_in(const Json& row, const char* which) {
  const auto at = row.find(which);
  if (at == row.end() || !at->is_object()) return 0;
  for (const auto* key : {"time", "cpu_time"})
    if (const auto time = at->find(key); time != at->end() && time->is_number())
      return time->get<double>();
  return 0;
}

void read_json(const Source& source, NcclTimes& times) {
  const auto document = Json::parse(source.text, nullptr, false);
  const auto results = document.find("results");
  if (document.is_discarded() || !document.is_object() || results == document.end() ||
      !results->is_array())
    throw Error(Errc::invalid_argument,
                fmt::format("{}: not the JSON of nccl-tests: it has no results", source.name));
  if (const auto config = document.find("config"); config != document.end())
    if (const auto devices = config->find("devices"); devices != config->end())
      times.ranks = static_cast<int>(devices->size());
  for (const auto& row : *results)
    if (row.is_object() && row.contains("size") && row["size"].is_number())
      add(times, row["size"].get<double>(), time_in(row, "out_of_place"), time_in(row, "in_place"));
}

// "  1048576  262144  float  sum  -1  35.21  29.78  52.12  0  34.98  29.98  52.46  0"; columns of
// other versions stand in other places, so that the heading decides.
void read_text(const Source& source, NcclTimes& times) {
  Lines lines(source);
  std::vector<std::size_t> time_columns;
  while (lines.next()) {
    auto words = words_of(lines.line());
    if (!words.empty() && words.front() == "#") {
      words.erase(words.begin());
      if (word(words, 0) == "Rank")
        times.ranks = std::max(times.ranks, 1 + rank_of(word(words, 1)).value_or(-1));
      if (word(words, 0) == "size") {
        time_columns.clear();
        for (std::size_t i = 0; i < words.size(); ++i)
          if (words[i] == "time" || words[i] == "cputime") time_columns.push_back(i);
      }
      continue;
    }
    const auto bytes = count_of(word(words, 0));
    if (!bytes || time_columns.empty()) continue;
    std::array<double, 2> us{};
    for (std::size_t i = 0; i < std::min(us.size(), time_columns.size()); ++i)
      us[i] = number_of(word(words, time_columns[i])).value_or(0);
    if (us[0] <= 0 && us[1] <= 0) lines.fail("a row of nccl-tests without a time");
    add(times, static_cast<double>(*bytes), us[0], us[1]);
  }
}

}  // namespace

NcclTimes read_nccl_tests(const Source& source, std::string_view collective) {
  NcclTimes times;
  times.collective = collective_of(source, collective);
  const auto first = source.text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && source.text[first] == '{')
    read_json(source, times);
  else
    read_text(source, times);
  std::sort(times.rows.begin(), times.rows.end(),
            [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  times.rows.erase(std::unique(times.rows.begin(), times.rows.end(),
                               [](const auto& a, const auto& b) { return a.bytes == b.bytes; }),
                   times.rows.end());
  if (times.rows.empty())
    throw Error(Errc::invalid_argument,
                fmt::format("{}: no row of nccl-tests in it: they begin with a size in bytes, "
                            "under a heading with 'size' and 'time'",
                            source.name));
  return times;
}

}  // namespace sinew::imports
