#include "model/network_file.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cmath>
#include <limits>
#include <set>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

constexpr int kVersion = 1;
constexpr double kUs = 1e6;                                       // picoseconds
constexpr double byte_ps(double gbytes) { return 1e3 / gbytes; }  // and back

[[noreturn]] void refuse(std::string_view path, const toml::source_region& where,
                         const std::string& what) {
  throw Error(Errc::invalid_argument, fmt::format("{}:{}: {}", path, where.begin.line, what));
}

/// One table of the file. Remembers which keys were asked for, so that others can be refused.
class Section {
 public:
  Section(const toml::table* table, std::string_view path, std::string_view name)
      : table_(table), path_(path), name_(name) {}

  explicit operator bool() const { return table_ != nullptr; }

  double number(std::string_view key, double least, double otherwise) {
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
  double above_zero(std::string_view key) {
    const auto* node = find(key);
    if (node == nullptr) refuse(path_, table_->source(), fmt::format("{} lacks {}", name_, key));
    const double value = number(key, -std::numeric_limits<double>::max(), 0);
    if (!(value > 0))
      refuse(path_, node->source(),
             fmt::format("{} = {} is impossible: more than 0 is", key, value));
    return value;
  }
  std::string text(std::string_view key) {
    const auto* node = find(key);
    if (node == nullptr) return "";
    if (!node->is_string()) refuse(path_, node->source(), fmt::format("{} is not a text", key));
    return std::string(*node->value<std::string_view>());
  }
  Section table(std::string_view key) {
    const auto* node = table_ == nullptr ? nullptr : find(key);
    if (node != nullptr && !node->is_table())
      refuse(path_, node->source(), fmt::format("{} is not a table", key));
    return {node == nullptr ? nullptr : node->as_table(), path_, fmt::format("[{}]", key)};
  }
  Curve curve(std::string_view key) {
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
      segments.push_back(piece.segment(&entry == &array->back(),
                                       segments.empty() ? 0 : segments.back().most_bytes));
    }
    return Curve(std::move(segments));
  }
  /// Call last: keys that nobody asked for are mistakes.
  void check() const {
    if (table_ == nullptr) return;
    const std::vector<std::string_view> known(known_.begin(), known_.end());
    for (const auto& [key, node] : *table_)
      if (!known_.contains(key.str()))
        refuse(path_, key.source(), unknown(fmt::format("key in {}", name_), key.str(), known));
  }

 private:
  const toml::node* find(std::string_view key) {
    known_.emplace(key);
    return table_ == nullptr ? nullptr : table_->get(key);
  }
  CurvePart segment(bool last, double before) {
    CurvePart segment;
    segment.alpha_ps = number("alpha_us", 0, 0) * kUs;
    segment.byte_ps = byte_ps(above_zero("gbytes_per_s"));
    const auto* most = find("max_bytes");
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

  const toml::table* table_;
  std::string_view path_;
  std::string name_;
  std::set<std::string, std::less<>> known_;
};

BoardCosts read_board(Section& board) {
  BoardCosts costs;
  costs.wait_ps = board.number("wait_us", 0, 0) * kUs;
  costs.slot_bytes = board.number("slot_bytes", 0, 0);
  costs.publish = board.curve("publish");
  costs.gather = board.curve("gather");
  return costs;
}

Provenance read_provenance(Section& from) {
  Provenance provenance;
  provenance.made_by = from.text("made_by");
  provenance.host = from.text("host");
  provenance.date = from.text("date");
  provenance.transport = from.text("transport");
  provenance.ranks = static_cast<int>(from.number("ranks", 0, 0));
  provenance.cores = static_cast<int>(from.number("cores", 0, 0));
  provenance.load = from.number("load_average", 0, 0);
  provenance.noise = from.number("noise_factor", 0, 0);
  provenance.left_out_error = from.number("left_out_error_percent", 0, 0) / 100;
  provenance.schedule_error = from.number("schedule_error_percent", 0, 0) / 100;
  return provenance;
}

Network read(const toml::table& document, std::string_view path) {
  Section top(&document, path, "the file");
  if (top.text("format") != "sinew-net")
    refuse(path, document.source(), "not a network model: it does not say format = \"sinew-net\"");
  if (const double version = top.number("version", 0, 0); version != kVersion)
    refuse(
        path, document.source(),
        fmt::format("this is version {} of the format; this program reads {}", version, kVersion));
  Network network{.name = top.text("name")};
  auto link = top.table("link"), compute = top.table("compute"), board = top.table("board");
  auto error = top.table("error"), provenance = top.table("provenance");
  if (!link) refuse(path, document.source(), "there is no [link]");
  network.one_way = link.curve("one_way");
  if (network.one_way.is_free()) refuse(path, document.source(), "[link] lacks one_way");
  network.exchange = link.curve("exchange");
  network.eager_bytes = link.number("eager_bytes", 0, -1);
  if (compute) {
    network.reduce = compute.curve("reduce");
    network.copy = compute.curve("copy");
    network.call_ps = compute.number("call_us", 0, 0) * kUs;
  }
  if (board) network.board = read_board(board);
  if (error) {
    network.error.low = error.number("low_factor", 0, 1);
    network.error.high = error.number("high_factor", network.error.low, 1);
  }
  if (provenance) network.provenance = read_provenance(provenance);
  for (const auto* section : {&top, &link, &compute, &board, &error, &provenance}) section->check();
  return network;
}

std::string curve_text(std::string_view key, const Curve& curve) {
  if (curve.is_free()) return "";
  std::string text = fmt::format("{} = [\n", key);
  for (const auto& segment : curve.segments()) {
    text += "  { ";
    if (std::isfinite(segment.most_bytes))
      text += fmt::format("max_bytes = {:.0f}, ", segment.most_bytes);
    text += fmt::format("alpha_us = {}, gbytes_per_s = {} }},\n", segment.alpha_ps / kUs,
                        byte_ps(segment.byte_ps));
  }
  return text + "]\n";
}

// A text as TOML quotes it.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else
      result += c;
  }
  return result + "\"";
}

}  // namespace

Network parse_network(std::string_view text, std::string_view path) {
  try {
    return read(toml::parse(text, path), path);
  } catch (const toml::parse_error& error) {
    refuse(path, error.source(), std::string(error.description()));
  }
}

std::string to_toml(const Network& network) {
  std::string text = fmt::format(
      "# What moving and combining bytes costs: docs/format-net.md. Units are decimal.\n"
      "format = \"sinew-net\"\nversion = {}\nname = {}\n\n[link]\n",
      kVersion, quoted(network.name));
  if (network.eager_bytes >= 0) text += fmt::format("eager_bytes = {:.0f}\n", network.eager_bytes);
  text += curve_text("one_way", network.one_way) + curve_text("exchange", network.exchange);
  text += fmt::format("\n[compute]\ncall_us = {}\n", network.call_ps / kUs);
  text += curve_text("reduce", network.reduce) + curve_text("copy", network.copy);
  if (const auto& board = network.board) {
    text += fmt::format("\n[board]\nwait_us = {}\nslot_bytes = {:.0f}\n", board->wait_ps / kUs,
                        board->slot_bytes);
    text += curve_text("publish", board->publish) + curve_text("gather", board->gather);
  }
  text += fmt::format("\n[error]\nlow_factor = {}\nhigh_factor = {}\n", network.error.low,
                      network.error.high);
  const auto& from = network.provenance;
  text += fmt::format(
      "\n[provenance]\nmade_by = {}\nhost = {}\ndate = {}\ntransport = {}\nranks = {}\ncores = {}\n"
      "load_average = {}\nnoise_factor = {}\nleft_out_error_percent = {}\n"
      "schedule_error_percent = {}\n",
      quoted(from.made_by), quoted(from.host), quoted(from.date), quoted(from.transport),
      from.ranks, from.cores, from.load, from.noise, from.left_out_error * 100,
      from.schedule_error * 100);
  return text;
}

}  // namespace sinew
