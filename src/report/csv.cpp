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

std::string more_workers_csv(const RunAnswer& answer) {
  std::string text =
      "workers,scheme,algorithm,step_us_modelled,low_us_modelled,high_us_modelled,"
      "compute_us_modelled,exposed_us_modelled,efficiency_modelled,best_scheme_modelled\n";
  for (std::size_t i = 0; i < answer.asked.size(); ++i) {
    const auto& step = answer.asked[i];
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", step.workers, cell(step.scheme),
                        cell(step.algorithm), step.step_ms * 1e3, step.low_ms * 1e3,
                        step.high_ms * 1e3, step.compute_ms * 1e3, step.exposed_ms * 1e3,
                        step.efficiency, cell(answer.schemes[i].front().scheme));
  }
  return text;
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
  std::string iterations =
      "iteration,phase,begin_s,elapsed_s,compute_s,data_s,compress_s,moving_s,waiting_s,hidden_s,"
      "wire_bytes_modelled\n";
  for (const auto& one : summary.steps.iterations) {
    const auto& split = one.split;
    iterations += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", one.number,
                              cell(summary.steps.phases[one.phase].name), one.begin_s,
                              split.elapsed_s, split.compute_s, split.data_s, split.compress_s,
                              split.moving_s, split.waiting_s, split.hidden_s, one.wire_bytes);
  }
  std::string phases =
      "phase,first,iterations,mean_s,error_s,median_s,p95_s,longest_s,wire_bytes_modelled\n";
  for (const auto& phase : summary.steps.phases)
    phases += fmt::format("{},{},{},{},{},{},{},{},{}\n", cell(phase.name), phase.first,
                          phase.iterations, phase.split.elapsed_s, phase.error_s, phase.median_s,
                          phase.p95_s, phase.longest_s, phase.wire_bytes);
  std::string rates = "routine,from_bytes,calls,bytes_per_s,source,share_of_link\n";
  for (const auto& row : summary.bandwidth)
    rates +=
        fmt::format("{},{},{},{},{},{}\n", cell(row.routine), row.from_bytes, row.calls,
                    row.bytes_per_s.value, name(row.bytes_per_s.source), number(row.share_of_link));
  std::string algorithms = "routine,from_bytes,algorithm,calls,seconds\n";
  for (const auto& row : summary.algorithms)
    algorithms += fmt::format("{},{},{},{},{}\n", cell(row.routine), row.from_bytes,
                              cell(row.algorithm), row.calls, row.seconds);
  std::string findings = "id,confidence,cost_s,benefit_s_modelled,claim\n";
  for (const auto& finding : summary.findings)
    findings +=
        fmt::format("{},{},{},{},{}\n", finding.id, name(finding.confidence), finding.cost_s,
                    finding.benefit ? fmt::format("{}", finding.benefit->seconds.value) : "",
                    cell(finding.claim));
  std::vector<std::pair<std::string, std::string>> files{
      {"iterations.csv", iterations}, {"phases.csv", phases},     {"bandwidth.csv", rates},
      {"algorithms.csv", algorithms}, {"findings.csv", findings}, {"routines.csv", routines},
      {"sizes.csv", sizes},           {"ranks.csv", ranks},       {"messages.csv", messages}};
  if (summary.more_workers)
    files.emplace_back("more_workers.csv", more_workers_csv(*summary.more_workers));
  return files;
}

}  // namespace sinew::report
