// Descriptions of training runs as text: docs/format-run.md.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "model/run_settings.hpp"
#include "model/scheme_phases.hpp"

namespace sinew {
namespace {

constexpr int kVersion = 1;

using Run = TrainingRun;

[[noreturn]] void refuse(std::string_view path, const toml::source_region& where,
                         const std::string& what) {
  throw Error(Errc::invalid_argument, fmt::format("{}:{}: {}", path, where.begin.line, what));
}

/// Reads a file: every leaf is one of the settings, a bucket, or something stated.
class RunReader {
 public:
  RunReader(const toml::table& document, std::string_view path)
      : document_(document), path_(path) {}

  Run read() {
    if (document_["format"].value_or(std::string_view{}) != "sinew-run")
      refuse(path_, document_.source(),
             "not a training run: it does not say format = \"sinew-run\"");
    if (document_["version"].value_or(0) != kVersion)
      refuse(path_, document_.source(),
             fmt::format("this program reads version {} of the format", kVersion));
    for (const auto& [key, node] : document_) top(key.str(), node, key.source());
    finish();
    return std::move(run_);
  }

 private:
  void top(std::string_view key, const toml::node& node, const toml::source_region& where) {
    if (key == "format" || key == "version") return;
    if (key == "name") {
      run_.name = text(key, node);
    } else if (key == "bucket") {
      buckets(node);
    } else if (key == "stated") {
      stated(table(key, node));
    } else if (key == "link") {
      link(table(key, node));
    } else if (node.is_table()) {
      for (const auto& [inner, value] : *node.as_table())
        leaf(fmt::format("{}.{}", key, inner.str()), value, inner.source());
    } else {
      refuse(path_, where, unknown_key(key, run_));
    }
  }

  void leaf(const std::string& key, const toml::node& node, const toml::source_region& where) {
    if (key == "step.pattern") {
      run_.pattern = word("pattern", node, run_patterns());
    } else if (key == "compression.scheme") {
      run_.scheme = word("compression scheme", node, modelled_schemes());
    } else if (key == "step.parameters") {
      parameters_ = number(key, node);
    } else if (const auto* setting = find_setting(key)) {
      const double value = node.is_boolean() && setting->value == &Run::overlap
                               ? (*node.value<bool>() ? 1 : 0)
                               : number(key, node);
      try {
        check_range(*setting, value);
      } catch (const Error& error) {
        refuse(path_, node.source(), error.what());
      }
      run_.*setting->value = value;
    } else {
      refuse(path_, where, unknown_key(key, run_));
    }
  }

  // [link.nic] names the link, [link] does not.
  void link(const toml::table& link) {
    for (const auto& [key, node] : link)
      if (node.is_table()) {
        if (run_.link_name != "link")
          refuse(path_, key.source(), "a run has one link; a faster one inside is [island]");
        run_.link_name = key.str();
        for (const auto& [inner, value] : *node.as_table())
          leaf(fmt::format("link.{}", inner.str()), value, inner.source());
      } else {
        leaf(fmt::format("link.{}", key.str()), node, key.source());
      }
  }

  void buckets(const toml::node& node) {
    if (!node.is_array() || node.as_array()->empty())
      refuse(path_, node.source(), "buckets are [[bucket]] tables, each with bytes");
    for (const auto& entry : *node.as_array()) {
      const auto& bucket = table("bucket", entry);
      RunBucket read;
      for (const auto& [key, value] : bucket) {
        if (key.str() != "bytes" && key.str() != "ready_ms")
          refuse(path_, key.source(),
                 fmt::format("a bucket has bytes and ready_ms, no {}", key.str()));
        (key.str() == "bytes" ? read.bytes : read.ready_ms) = number(key.str(), value);
      }
      if (!(read.bytes > 0)) refuse(path_, entry.source(), "a bucket lacks bytes above 0");
      run_.buckets.push_back(read);
    }
  }

  void stated(const toml::table& said) {
    auto& stated = run_.stated;
    for (const auto& [key, node] : said) {
      if (key.str() == "allreduce_ms")
        stated.allreduce_ms = number(key.str(), node);
      else if (key.str() == "communication_s")
        stated.communication_s = number(key.str(), node);
      else if (key.str() == "operations")
        stated.operations = number(key.str(), node);
      else if (key.str() == "scaling")
        stated.scaling = text(key.str(), node);
      else if (key.str() == "at_workers") {
        const auto* list = node.as_array();
        if (list == nullptr) refuse(path_, node.source(), "at_workers is a list of tables");
        for (const auto& entry : *list) {
          const auto& point = table("at_workers", entry);
          stated.at_workers.emplace_back(
              static_cast<int>(number("workers", required(point, "workers"))),
              number("communication_s", required(point, "communication_s")));
        }
      } else {
        refuse(path_, key.source(),
               fmt::format("[stated] has allreduce_ms, communication_s, operations, scaling and "
                           "at_workers, no {}",
                           key.str()));
      }
    }
  }

  void finish() {
    if (parameters_ > 0 && !run_.buckets.empty())
      refuse(path_, document_.source(), "say step.parameters or [[bucket]], not both");
    if (parameters_ > 0) run_.buckets.push_back({parameters_ * run_.element_bytes, -1});
    if (run_.buckets.empty())
      refuse(path_, document_.source(), "nothing to send: say step.parameters, or [[bucket]]");
    run_.described_batch = run_.batch;
  }

  const toml::node& required(const toml::table& table, std::string_view key) const {
    const auto* node = table.get(key);
    if (node == nullptr) refuse(path_, table.source(), fmt::format("{} is missing", key));
    return *node;
  }
  const toml::table& table(std::string_view key, const toml::node& node) const {
    if (!node.is_table()) refuse(path_, node.source(), fmt::format("{} is not a table", key));
    return *node.as_table();
  }
  double number(std::string_view key, const toml::node& node) const {
    const auto value = node.value<double>();
    if (!value || node.is_boolean() || !std::isfinite(*value) || *value < 0)
      refuse(path_, node.source(), fmt::format("{} is not a number of 0 or more", key));
    return *value;
  }
  std::string text(std::string_view key, const toml::node& node) const {
    if (!node.is_string()) refuse(path_, node.source(), fmt::format("{} is not a text", key));
    return std::string(*node.value<std::string_view>());
  }
  std::string word(std::string_view kind, const toml::node& node,
                   std::span<const std::string_view> known) const {
    auto value = text(kind, node);
    if (std::find(known.begin(), known.end(), value) == known.end())
      refuse(path_, node.source(), unknown(kind, value, known));
    return value;
  }

  const toml::table& document_;
  std::string_view path_;
  Run run_;
  double parameters_ = 0;
};

}  // namespace

TrainingRun parse_run(std::string_view toml, std::string_view path) {
  try {
    const auto document = toml::parse(toml, path);
    return RunReader(document, path).read();
  } catch (const toml::parse_error& error) {
    refuse(path, error.source(), std::string(error.description()));
  }
}

}  // namespace sinew
