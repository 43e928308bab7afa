#include "report/finding.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "report/training_findings.hpp"

namespace sinew::report {

std::vector<Finding> find_all(const trace::Profile& profile) {
  std::vector<Finding> findings;
  if (profile.ranks.empty()) return findings;
  const auto keep = [&](const auto& found) {
    if (found) findings.push_back(explain(*found));
  };
  keep(find_polling(profile));
  keep(find_data_elsewhere(profile));
  keep(find_out_of_step(profile));
  keep(find_last_ready(profile));
  return findings;
}

std::string benefit_text(const Benefit& benefit) {
  const auto seconds = [](Modelled value) { return human_ns(value.value * 1e9); };
  return fmt::format("Would save about {} ({} to {}, modelled: {}).", seconds(benefit.seconds),
                     seconds(benefit.low), seconds(benefit.high), benefit.how);
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const auto& finding : findings) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", finding.claim);
    for (const auto& line : finding.arithmetic) text += fmt::format("  {}\n", line);
    for (const auto& line : finding.advice) text += fmt::format("  - {}\n", line);
    if (finding.benefit) text += fmt::format("  {}\n", benefit_text(*finding.benefit));
    if (!finding.command.empty()) text += fmt::format("  Try: {}\n", finding.command);
    text += fmt::format("  ({}; {})\n", finding.id, name(finding.confidence));
  }
  return text;
}

}  // namespace sinew::report
