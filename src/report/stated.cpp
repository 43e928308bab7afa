#include "report/stated.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew::report {
namespace {

using Problem = std::optional<std::string>;

/// One statement: its fields, with errors that name the line.
class Statement {
 public:
  Statement(const toml::table& table, std::string_view path) : table_(table), path_(path) {}

  [[nodiscard]] std::uint32_t line() const { return table_.source().begin.line; }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Errc::invalid_argument, fmt::format("{}:{}: {}", path_, line(), what));
  }
  [[nodiscard]] bool has(std::string_view key) const { return table_.contains(key); }
  [[nodiscard]] double number(std::string_view key) const {
    const auto value = table_[key].value<double>();
    if (!value || !std::isfinite(*value)) fail(fmt::format("'{}' must be a number", key));
    return *value;
  }
  [[nodiscard]] double number_or(std::string_view key, double otherwise) const {
    return has(key) ? number(key) : otherwise;
  }
  [[nodiscard]] std::string text(std::string_view key) const {
    const auto value = table_[key].value<std::string>();
    if (!value) fail(fmt::format("'{}' must be text", key));
    return *value;
  }
  [[nodiscard]] std::vector<double> numbers(std::string_view key) const {
    const auto* const list = table_[key].as_array();
    if (list == nullptr || list->empty()) fail(fmt::format("'{}' must be a list of numbers", key));
    std::vector<double> values;
    for (const auto& item : *list) {
      const auto value = item.value<double>();
      if (!value || !std::isfinite(*value)) fail(fmt::format("'{}' must hold numbers", key));
      values.push_back(*value);
    }
    return values;
  }
  [[nodiscard]] std::vector<std::string> words(std::string_view key) const {
    const auto* const list = table_[key].as_array();
    if (list == nullptr || list->empty()) fail(fmt::format("'{}' must be a list of words", key));
    std::vector<std::string> values;
    for (const auto& item : *list) {
      const auto value = item.value<std::string>();
      if (!value) fail(fmt::format("'{}' must hold words", key));
      values.push_back(*value);
    }
    return values;
  }
  [[nodiscard]] std::vector<std::pair<double, double>> pairs(std::string_view key) const {
    std::vector<std::pair<double, double>> values;
    const auto* const list = table_[key].as_array();
    if (list == nullptr) fail(fmt::format("'{}' must be a list of pairs", key));
    for (const auto& item : *list) {
      const auto* const pair = item.as_array();
      if (pair == nullptr || pair->size() != 2) fail(fmt::format("'{}' must hold pairs", key));
      const auto a = (*pair)[0].value<double>(), b = (*pair)[1].value<double>();
      if (!a || !b) fail(fmt::format("'{}' must hold pairs of numbers", key));
      values.emplace_back(*a, *b);
    }
    return values;
  }
  /// Stated figures are rounded: 1 % unless it says otherwise.
  [[nodiscard]] bool close(double stated, double right) const {
    const auto most = number_or("tolerance", 0.01);
    return std::abs(stated - right) <= most * std::max(std::abs(stated), std::abs(right)) + 1e-12;
  }

 private:
  const toml::table& table_;
  std::string_view path_;
};

Problem sum(const Statement& s, std::string_view) {
  const auto parts = s.numbers("parts");
  const auto right = std::accumulate(parts.begin(), parts.end(), 0.0), total = s.number("total");
  if (s.close(total, right)) return {};
  return fmt::format("the parts make {:.6g}, not {:.6g}", right, total);
}

Problem product(const Statement& s, std::string_view) {
  const auto factors = s.numbers("factors");
  const auto right = std::accumulate(factors.begin(), factors.end(), 1.0, std::multiplies<>{});
  const auto result = s.number("result");
  if (s.close(result, right)) return {};
  return fmt::format("{:.6g} is {:.6g}, not {:.6g}", fmt::join(factors, " x "), right, result);
}

Problem quotient(const Statement& s, std::string_view) {
  const auto over = s.number("of"), by = s.number("by"), result = s.number("result");
  if (by == 0) s.fail("'by' is 0");
  if (s.close(result, over / by)) return {};
  return fmt::format("{:.6g} / {:.6g} is {:.4g}, not {:.4g}", over, by, over / by, result);
}

Problem same(const Statement& s, std::string_view) {
  const auto values = s.numbers("values");
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (s.close(*least, *most)) return {};
  return fmt::format("one thing has the values {:.6g}: up to {:.1f} times apart",
                     fmt::join(values, " and "), *most / *least);
}

/// Messages: range, most frequent, mean, how many and how many different.
Problem sizes(const Statement& s, std::string_view) {
  const auto rows = s.has("rows") ? s.pairs("rows") : std::vector<std::pair<double, double>>{};
  double listed = 0;
  for (const auto& [size, count] : rows) {
    listed += count;
    if (s.has("least") && size < s.number("least"))
      return fmt::format("{:g} messages of {:g} are listed, below the stated least of {:g}", count,
                         size, s.number("least"));
    if (s.has("most") && size > s.number("most"))
      return fmt::format("{:g} messages of {:g} are listed, above the stated most of {:g}", count,
                         size, s.number("most"));
  }
  if (s.has("count") && listed > s.number("count"))
    return fmt::format("{:g} messages are listed of {:g}", listed, s.number("count"));
  if (s.has("count") && s.has("distinct")) {
    const auto most = s.number("count") - listed + static_cast<double>(rows.size());
    if (s.number("distinct") > most)
      return fmt::format(
          "{:g} distinct sizes of {:g} messages cannot be: {:g} of them have {} sizes, so there "
          "are at most {:g}",
          s.number("distinct"), s.number("count"), listed, rows.size(), most);
  }
  if (s.has("mean") && s.has("total") && s.has("count")) {
    const auto right = s.number("total") / s.number("count");
    if (!s.close(s.number("mean"), right))
      return fmt::format("the mean of {:g} messages of {:g} in all is {:.4g}, not {:g}",
                         s.number("count"), s.number("total"), right, s.number("mean"));
  }
  for (const auto* const key : {"mode", "median", "mean"})
    if (s.has(key) && s.has("least") && s.has("most") &&
        (s.number(key) < s.number("least") || s.number(key) > s.number("most")))
      return fmt::format("the {} {:g} is not between {:g} and {:g}", key, s.number(key),
                         s.number("least"), s.number("most"));
  return {};
}

Problem shape(const Statement& s, std::string_view) {
  const auto least = s.number("least"), most = s.number("most"), median = s.number("median");
  if (s.text("says") != "uniform") s.fail("'says' must be \"uniform\"");
  const auto place = (median - least) / (most - least);
  if (place > 0.4 && place < 0.6) return {};
  return fmt::format(
      "uniform sizes from {:g} to {:g} have their median at {:.4g}, not {:g}: half "
      "of them lie in {:.0f} % of the range",
      least, most, (least + most) / 2, median, 100 * place);
}

/// A mean lies between its parts; and only what was measured alike has one.
Problem mean(const Statement& s, std::string_view) {
  const auto parts = s.numbers("parts");
  const auto result = s.number("result");
  const auto [least, most] = std::minmax_element(parts.begin(), parts.end());
  if (result < *least && !s.close(result, *least))
    return fmt::format("the mean {:g} is below all of {:g}", result, fmt::join(parts, ", "));
  if (result > *most && !s.close(result, *most))
    return fmt::format("the mean {:g} is above all of {:g}", result, fmt::join(parts, ", "));
  if (s.has("configurations") && s.number("configurations") > 1)
    return fmt::format("{:g} is the mean of {:g} different configurations, which has no meaning",
                       result, s.number("configurations"));
  if (s.has("sources")) {
    const auto sources = s.words("sources");
    if (std::set<std::string>(sources.begin(), sources.end()).size() > 1)
      return fmt::format("{:g} averages figures that are {}", result, fmt::join(sources, " and "));
  }
  if (s.has("weights")) {
    const auto weights = s.numbers("weights");
    if (weights.size() != parts.size()) s.fail("as many 'weights' as 'parts'");
    const auto right = std::inner_product(parts.begin(), parts.end(), weights.begin(), 0.0) /
                       std::accumulate(weights.begin(), weights.end(), 0.0);
    if (!s.close(result, right))
      return fmt::format("the mean by weight is {:.4g}, not {:g}", right, result);
  }
  return {};
}

/// A rate is a measurement only if its time was not computed from it.
Problem rate(const Statement& s, std::string_view) {
  const auto computed = s.number("bytes") / s.number("capacity");
  const bool circular = s.close(s.number("seconds"), computed);
  if (s.text("says") != "measured" || !circular) return {};
  return fmt::format(
      "{:.4g} s is {:.4g} bytes / {:.4g} bytes/s: a model's answer, and so is the "
      "{:.0f} % of the link that follows from it",
      s.number("seconds"), s.number("bytes"), s.number("capacity"),
      100 * computed / s.number("seconds"));
}

Problem scaling(const Statement& s, std::string_view) {
  const auto ranks = s.numbers("ranks"), times = s.numbers("times");
  if (ranks.size() != times.size() || ranks.size() < 2) s.fail("as many 'ranks' as 'times'");
  const auto law = s.text("says");
  if (law != "logarithmic" && law != "linear" && law != "constant")
    s.fail("'says' must be logarithmic, linear or constant");
  const auto more = ranks.back() / ranks.front(), grew = times.back() / times.front();
  const auto allowed = law == "logarithmic" ? std::log2(ranks.back()) / std::log2(ranks.front())
                       : law == "linear"    ? more
                                            : 1;
  if (grew <= 1.25 * allowed) return {};
  return fmt::format("{} growth to {:g} times the ranks is {:.2f} times the time, not {:.2f}", law,
                     more, allowed, grew);
}

Problem columns(const Statement& s, std::string_view) {
  const auto names = s.words("names");
  const auto values = s.numbers("values");
  if (names.size() == values.size()) return {};
  return fmt::format("{} values under {} names: which is which is not known", values.size(),
                     names.size());
}

Problem exclusive(const Statement& s, std::string_view) {
  const auto claims = s.words("claims");
  const std::set<std::string> different(claims.begin(), claims.end());
  if (different.size() < 2) return {};
  return fmt::format("it is said to be {}, which exclude each other", fmt::join(claims, " and "));
}

/// One change, explained by several causes that came with it.
Problem cause(const Statement& s, std::string_view) {
  const auto causes = s.words("causes");
  if (causes.size() < 2) return {};
  return fmt::format(
      "the same step from {:g} to {:g} is credited to {}: at most one of them was "
      "varied alone",
      s.number("before"), s.number("after"), fmt::join(causes, " and to "));
}

Problem trend(const Statement& s, std::string_view) {
  const auto values = s.numbers("values");
  const auto says = s.text("says");
  const auto change = values.back() / values.front() - 1;
  const auto found = change > 0.05 ? "rises" : change < -0.05 ? "falls" : "steady";
  if (says == found) return {};
  return fmt::format("{:.4g} to {:.4g} {} ({:+.0f} %), it is said to be {}", values.front(),
                     values.back(), found, 100 * change, says);
}

Problem ratio(const Statement& s, std::string_view) {
  const auto value = s.number("ratio");
  const bool none = s.text("says") == "none";
  if (!none || s.close(value, 1)) return {};
  return fmt::format("said to be not compressed, with a ratio of {:g}", value);
}

Problem loss(const Statement& s, std::string_view) {
  const auto guess = std::log(s.number("classes"));
  const auto values = s.numbers("values");
  for (const auto value : values)
    if (value < 0.95 * guess) return {};
  return fmt::format(
      "a loss of {:.4g} is that of a guess among {:g} classes (ln {:g} = {:.4f}): "
      "nothing was learnt",
      fmt::join(values, ", "), s.number("classes"), s.number("classes"), guess);
}

Problem most(const Statement& s, std::string_view) {
  if (s.number("value") <= s.number("limit") * (1 + 1e-9)) return {};
  return fmt::format("{:.4g} is more than {:g}", s.number("value"), s.number("limit"));
}

/// Against a run.
Problem figure(const Statement& s, std::string_view report) {
  const auto at = s.text("at");
  if (report.empty()) s.fail("a statement of the kind \"figure\" needs a run to compare with");
  const auto json = nlohmann::json::parse(report);
  nlohmann::json found;
  try {
    found = json.at(nlohmann::json::json_pointer(at));
  } catch (const nlohmann::json::exception&) {
    s.fail(fmt::format("the report has nothing at '{}'", at));
  }
  if (!found.is_number()) return fmt::format("the report has {} at {}", found.dump(), at);
  if (s.close(s.number("value"), found.get<double>())) return {};
  return fmt::format("the run has {:.6g}, not {:.6g} ({})", found.get<double>(), s.number("value"),
                     at);
}

struct Kind {
  std::string_view name;
  Problem (*check)(const Statement& statement, std::string_view report);
};

constexpr std::array kKinds = std::to_array<Kind>({{"sum", sum},
                                                   {"product", product},
                                                   {"quotient", quotient},
                                                   {"same", same},
                                                   {"sizes", sizes},
                                                   {"shape", shape},
                                                   {"mean", mean},
                                                   {"rate", rate},
                                                   {"scaling", scaling},
                                                   {"columns", columns},
                                                   {"exclusive", exclusive},
                                                   {"cause", cause},
                                                   {"trend", trend},
                                                   {"ratio", ratio},
                                                   {"loss", loss},
                                                   {"most", most},
                                                   {"figure", figure}});

const Kind& kind_of(const Statement& statement) {
  const auto word = statement.text("kind");
  for (const auto& kind : kKinds)
    if (kind.name == word) return kind;
  statement.fail(unknown("kind", word, statement_kinds()));
}

}  // namespace

std::vector<std::string_view> statement_kinds() {
  std::vector<std::string_view> names;
  for (const auto& kind : kKinds) names.push_back(kind.name);
  return names;
}

Checked check_stated(std::string_view toml, std::string_view path, std::string_view report) {
  toml::table document;
  try {
    document = toml::parse(toml, path);
  } catch (const toml::parse_error& error) {
    throw Error(Errc::invalid_argument,
                fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
  const auto* const statements = document["statement"].as_array();
  if (statements == nullptr || statements->empty())
    throw Error(Errc::invalid_argument, fmt::format("{}: it has no [[statement]]", path));
  Checked checked;
  for (const auto& entry : *statements) {
    const auto* const table = entry.as_table();
    if (table == nullptr)
      throw Error(Errc::invalid_argument, fmt::format("{}: 'statement' must be tables", path));
    const Statement statement(*table, path);
    const auto name =
        statement.has("name") ? statement.text("name") : fmt::format("line {}", statement.line());
    if (auto problem = kind_of(statement).check(statement, report))
      checked.objections.push_back({name, statement.line(), std::move(*problem)});
    else
      checked.held.push_back(name);
  }
  return checked;
}

TextTable stated_table(const Checked& checked) {
  TextTable table{
      "Stated figures",
      fmt::format("{} statements: {} contradict themselves or the run.",
                  checked.held.size() + checked.objections.size(), checked.objections.size()),
      {"statement", "objection"},
      {}};
  for (const auto& [name, line, what] : checked.objections) table.rows.push_back({name, what});
  return table;
}

}  // namespace sinew::report
