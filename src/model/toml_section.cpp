#include "model/toml_section.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {

void refuse(std::string_view path, const toml::source_region& where, const std::string& what) {
  throw Error(Errc::invalid_argument, fmt::format("{}:{}: {}", path, where.begin.line, what));
}

std::string Section::where() const {
  return table_ == nullptr ? std::string(path_)
                           : fmt::format("{}:{}", path_, table_->source().begin.line);
}

void Section::complain(std::string_view key, const std::string& what) {
  const auto* node = find(key);
  refuse(path_, node == nullptr ? table_->source() : node->source(), what);
}

double Section::number(std::string_view key, double least, double otherwise) {
  const auto* node = find(key);
  if (node == nullptr) return otherwise;
  const auto value = node->value<double>();
  if (!value || !std::isfinite(*value) || node->is_boolean())
    refuse(path_, node->source(), fmt::format("{} is not a number", key));
  if (!(*value >= least))
    refuse(path_, node->source(),
           fmt::format("{} = {} is impossible: {} or more is", key, *value, least));
  return *value;
}

double Section::above_zero(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) refuse(path_, table_->source(), fmt::format("{} lacks {}", name_, key));
  const double value = number(key, -std::numeric_limits<double>::max(), 0);
  if (!(value > 0))
    refuse(path_, node->source(), fmt::format("{} = {} is impossible: more than 0 is", key, value));
  return value;
}

int Section::whole(std::string_view key, int least, int otherwise) {
  const double value = number(key, least, otherwise);
  if (value != std::floor(value) || value > std::numeric_limits<int>::max())
    complain(key, fmt::format("{} = {} is impossible: a whole number below 2^31 is", key, value));
  return static_cast<int>(value);
}

bool Section::flag(std::string_view key, bool otherwise) {
  const auto* node = find(key);
  if (node == nullptr) return otherwise;
  if (!node->is_boolean())
    refuse(path_, node->source(), fmt::format("{} is neither true nor false", key));
  return *node->value<bool>();
}

std::string Section::text(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return "";
  if (!node->is_string()) refuse(path_, node->source(), fmt::format("{} is not a text", key));
  return std::string(*node->value<std::string_view>());
}

std::size_t Section::choice(std::string_view key, std::span<const std::string_view> words) {
  if (find(key) == nullptr) return 0;
  const auto word = text(key);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == word) return i;
  complain(key, unknown(std::string(key), word, words));
}

std::vector<std::string> Section::texts(std::string_view key) {
  const auto* node = find(key);
  std::vector<std::string> all;
  if (node == nullptr) return all;
  const auto* array = node->as_array();
  if (array == nullptr) refuse(path_, node->source(), fmt::format("{} is a list: [\"wan\"]", key));
  for (const auto& entry : *array) {
    if (!entry.is_string())
      refuse(path_, entry.source(), fmt::format("an entry of {} is not a text", key));
    all.emplace_back(*entry.value<std::string_view>());
  }
  return all;
}

Section Section::table(std::string_view key) {
  const auto* node = table_ == nullptr ? nullptr : find(key);
  if (node != nullptr && !node->is_table())
    refuse(path_, node->source(), fmt::format("{} is not a table", key));
  return {node == nullptr ? nullptr : node->as_table(), path_, fmt::format("[{}]", key)};
}

std::vector<Section> Section::tables(std::string_view key) {
  std::vector<Section> all;
  const auto* node = find(key);
  if (node == nullptr) return all;
  const auto* array = node->as_array();
  if (array == nullptr) refuse(path_, node->source(), fmt::format("write [[{}]]", key));
  for (const auto& entry : *array) {
    if (!entry.is_table()) refuse(path_, entry.source(), fmt::format("write [[{}]]", key));
    all.emplace_back(entry.as_table(), path_, fmt::format("[[{}]]", key));
  }
  return all;
}

std::vector<std::pair<std::string, Section>> Section::named_tables() {
  std::vector<std::pair<std::string, Section>> all;
  if (table_ == nullptr) return all;
  for (const auto& [key, node] : *table_) {
    if (!node.is_table()) continue;
    known_.emplace(key.str());
    const std::string name(key.str());
    all.emplace_back(name, Section(node.as_table(), path_, fmt::format("the link '{}'", name)));
  }
  return all;
}

Curve Section::curve(std::string_view key) {
  const auto* node = find(key);
  if (node == nullptr) return {};
  const auto* array = node->as_array();
  if (array == nullptr || array->empty())
    refuse(path_, node->source(),
           fmt::format("{} is a list: [{{alpha_us = 1, gbytes_per_s = 10}}]", key));
  std::vector<CurvePart> segments;
  for (const auto& entry : *array) {
    if (!entry.is_table())
      refuse(path_, entry.source(), fmt::format("an entry of {} is not a table", key));
    Section piece(entry.as_table(), path_, fmt::format("an entry of {}", key));
    segments.push_back(
        piece.segment(&entry == &array->back(), segments.empty() ? 0 : segments.back().most_bytes));
  }
  return Curve(std::move(segments));
}

void Section::check() const {
  if (table_ == nullptr) return;
  const std::vector<std::string_view> known(known_.begin(), known_.end());
  for (const auto& [key, node] : *table_) {
    if (known_.contains(key.str())) continue;
    // The unit is part of the key: alpha for alpha_us is the commonest mistake.
    for (const auto& word : known_)
      if (word.starts_with(std::string(key.str()) + "_"))
        refuse(path_, key.source(),
               fmt::format("{} has no unit: write {} in {}", key.str(), word, name_));
    refuse(path_, key.source(), unknown(fmt::format("key in {}", name_), key.str(), known));
  }
}

const toml::node* Section::find(std::string_view key) {
  known_.emplace(key);
  return table_ == nullptr ? nullptr : table_->get(key);
}

CurvePart Section::segment(bool last, double before) {
  CurvePart segment;
  const auto* most = find("max_bytes");
  segment.alpha_ps = number("alpha_us", 0, 0) * kUs;
  if (!has("gbytes_per_s")) check();  // it may be there without its unit
  segment.byte_ps = byte_ps(above_zero("gbytes_per_s"));
  if (!last && most == nullptr)
    refuse(path_, table_->source(), fmt::format("{} lacks max_bytes; only the last may", name_));
  if (last && most != nullptr)
    refuse(path_, most->source(), "the last entry has no max_bytes: it goes on for ever");
  segment.most_bytes = number("max_bytes", 0, 0);
  if (!last && !(segment.most_bytes > before))
    refuse(path_, most->source(), "max_bytes must grow from entry to entry");
  check();
  return segment;
}

}  // namespace sinew
