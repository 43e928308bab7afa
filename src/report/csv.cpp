#include <fmt/format.h>

#include "report/report_page.hpp"

namespace sinew::report {
namespace {

std::string cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> to_csv(const Summary& summary) {
  std::string routines = "routine,calls,sent_bytes,received_bytes,seconds,share,waited_share\n";
  std::string sizes = "routine,bytes,calls,moved_bytes,seconds\n";
  for (const auto& routine : summary.routines) {
    routines +=
        fmt::format("{},{},{},{},{},{},{}\n", cell(routine.name), routine.calls, routine.sent,
                    routine.received, routine.seconds, routine.share, number(routine.waited_share));
    for (const auto& row : routine.sizes)
      sizes += fmt::format("{},{},{},{},{}\n", cell(routine.name), row.bytes, row.calls, row.moved,
                           row.seconds);
  }
  std::string ranks =
      "rank,host,complete,calls,sent_bytes,received_bytes,elapsed_s,communication_s,waited_s\n";
  for (const auto& rank : summary.ranks)
    ranks += fmt::format("{},{},{},{},{},{},{},{},{}\n", rank.rank, cell(rank.host), rank.complete,
                         rank.calls, rank.sent, rank.received, rank.elapsed_s, rank.communication_s,
                         number(rank.waited_s));
  std::string messages = "from,to,sent_bytes\n";
  for (std::size_t from = 0; from < summary.matrix.sent.size(); ++from)
    for (std::size_t to = 0; to < summary.matrix.ranks.size(); ++to)
      messages += fmt::format("{},{},{}\n", summary.matrix.ranks[from], summary.matrix.ranks[to],
                              summary.matrix.sent[from][to]);
  return {{"routines.csv", routines},
          {"sizes.csv", sizes},
          {"ranks.csv", ranks},
          {"messages.csv", messages}};
}

}  // namespace sinew::report
