// `sinew doctor`: what on this machine would get in the way, and how to repair it.
#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cli/arguments.hpp"
#include "cli/doctor_checks.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name(Level level) {
  return level == Level::ok ? "ok" : level == Level::warn ? "warn" : "fail";
}

std::string painted(const Paint& paint, Level level) {
  const auto word = fmt::format("{:<4}", name(level));
  return level == Level::ok     ? paint.good(word)
         : level == Level::warn ? paint.warn(word)
                                : paint.bad(word);
}

// The end of a file's path that fits a line; anything else can be broken into several.
std::string within(const std::string& value, std::size_t columns) {
  if (value.size() <= columns || value.find(' ') != std::string::npos) return value;
  return "..." + value.substr(value.size() - columns + 3);
}

}  // namespace

int run_doctor(int argc, char** argv) {
  CLI::App app{"Looks at what Sinew needs from this machine. Exit 0 when nothing fails, else 3.",
               "sinew doctor"};
  std::string ranks;
  bool json = false;
  app.add_option("-p,--ranks", ranks, "ranks of the job in mind (default: one a core)");
  app.add_flag("--json", json, "one JSON document");
  if (const auto status = parse(app, argc, argv)) return *status;

  auto checks = examine(ranks.empty() ? 0 : one_size(ranks, {}));
  for (auto& peer : examine_peers()) checks.push_back(std::move(peer));
  const auto count = [&](Level level) {
    return std::count_if(checks.begin(), checks.end(),
                         [&](const Checked& c) { return c.level == level; });
  };
  const auto failures = count(Level::fail), warnings = count(Level::warn);
  if (json) {
    Json rows = Json::array();
    for (const auto& check : checks)
      rows.push_back({{"check", check.name},
                      {"level", name(check.level)},
                      {"value", check.value},
                      {"repair", check.repair}});
    fmt::print("{}\n", Json{{"schema", "sinew-doctor"},
                            {"version", 1},
                            {"sinew", SINEW_VERSION},
                            {"ok", failures == 0},
                            {"checks", rows}}
                           .dump(1));
  } else {
    const Paint paint(stdout);
    for (const auto& check : checks) {
      fmt::print("{}  {:<18}  {}\n", painted(paint, check.level), check.name,
                 wrapped(within(check.value, 80 - 26), 80, 26, 26));
      if (!check.repair.empty()) fmt::print("{:6}{}\n", "", wrapped(check.repair, 80, 6, 6));
    }
    fmt::print("{} checks: {} fail, {} warn\n", checks.size(), failures, warnings);
  }
  return failures == 0 ? kFine : kMissing;
}

}  // namespace sinew
