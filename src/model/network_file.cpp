#include "model/network_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <sinew/algorithms.hpp>
#include <sinew/error.hpp>
#include "base/text.hpp"
#include "model/topology_file.hpp"

namespace sinew {
namespace {

constexpr int kVersion = 1;
BoardCosts read_board(Section& board) {
  BoardCosts costs;
  costs.wait_ps = board.number("wait_us", 0, 0) * kUs;
  costs.slot_bytes = board.number("slot_bytes", 0, 0);
  costs.publish = board.curve("publish");
  costs.gather = board.curve("gather");
  costs.pull = board.curve("pull");
  return costs;
}

std::vector<Correction> read_corrections(Section& top) {
  std::vector<Correction> all;
  for (auto& measured : top.tables("measured")) {
    Correction one;
    try {
      one.collective = parse_collective(measured.text("collective"));
      one.algorithm = find_algorithm(one.collective, measured.text("algorithm")).name;
    } catch (const Error& error) {
      measured.complain("algorithm", error.what());
    }
    for (auto& point : measured.tables("factors")) {
      one.points.push_back({point.above_zero("bytes"), point.above_zero("factor")});
      point.check();
      if (one.points.size() > 1 && one.points.back().bytes <= one.points.end()[-2].bytes)
        point.complain("bytes", "bytes must grow from entry to entry");
    }
    for (const auto& before : all)
      if (before.collective == one.collective && before.algorithm == one.algorithm)
        measured.complain("algorithm", "this algorithm was measured already, above");
    if (one.points.empty())
      measured.complain("factors", "factors needs an entry: { bytes = 8, factor = 1 }");
    measured.check();
    all.push_back(std::move(one));
  }
  return all;
}

std::string corrections_text(const std::vector<Correction>& all) {
  std::string text;
  for (const auto& one : all) {
    text += fmt::format("\n[[measured]]\ncollective = {}\nalgorithm = {}\nfactors = [\n",
                        quoted(name(one.collective)), quoted(one.algorithm));
    for (const auto& point : one.points)
      text += fmt::format("  {{ bytes = {}, factor = {:.4g} }},\n", point.bytes, point.factor);
    text += "]\n";
  }
  return text;
}

Provenance read_provenance(Section& from) {
  Provenance provenance;
  provenance.where = from.where();
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

// Where every level names its link, the first is what there is beside.
void complete_link(Network& network, const toml::table& document, std::string_view path) {
  if (!network.one_way.is_free()) return;
  const auto& levels = network.topology.levels;
  const bool named =
      !levels.empty() &&
      std::all_of(levels.begin(), levels.end(), [](const NetworkLevel& l) { return l.link >= 0; });
  if (!named)
    refuse(path, document.source(),
           "[link] lacks one_way: what a message costs where no level "
           "names a link");
  const auto& first = network.topology.links[static_cast<std::size_t>(levels.front().link)];
  network.one_way = first.one_way;
  network.exchange = first.exchange;
}

Network read(const toml::table& document, std::string_view path) {
  Section top(&document, path, "the file");
  if (top.text("format") != "sinew-net")
    refuse(path, document.source(), "not a network model: it does not say format = \"sinew-net\"");
  if (const double version = top.number("version", 0, 0); version != kVersion)
    refuse(
        path, document.source(),
        fmt::format("this is version {} of the format; this program reads {}", version, kVersion));
  Network network;
  network.name = top.text("name");
  auto link = top.table("link"), compute = top.table("compute"), board = top.table("board");
  auto error = top.table("error"), provenance = top.table("provenance");
  if (!link) refuse(path, document.source(), "there is no [link]");
  network.one_way = link.curve("one_way");
  network.exchange = link.curve("exchange");
  network.eager_bytes = link.number("eager_bytes", 0, -1);
  network.slice_bytes = link.number("slice_bytes", 0, 0);
  if (compute) {
    network.reduce = compute.curve("reduce");
    network.copy = compute.curve("copy");
    network.call_ps = compute.number("call_us", 0, 0) * kUs;
  }
  if (board) network.board = read_board(board);
  if (error) {
    network.error.low = error.number("low_factor", 0, 1);
    network.error.high = error.number("high_factor", network.error.low, 1);
    auto& corrected = network.corrected_error;
    corrected.low = error.number("corrected_low_factor", 0, 1);
    corrected.high = error.number("corrected_high_factor", corrected.low, 1);
  }
  if (provenance) network.provenance = read_provenance(provenance);
  network.corrections = read_corrections(top);
  network.topology = read_topology(top, link);
  complete_link(network, document, path);
  read_disturbances(top, network);
  for (const auto* section : {&top, &link, &compute, &board, &error, &provenance}) section->check();
  return network;
}

// The entry of a list of tables that has this name.
toml::table* entry_of(toml::node* node, std::string_view name) {
  if (node == nullptr) return nullptr;
  if (node->is_table()) return node->as_table();
  auto* array = node->as_array();
  if (array == nullptr) return nullptr;
  for (auto& entry : *array)
    if (auto* table = entry.as_table(); table != nullptr && table->at_path("name") == name)
      return table;
  return nullptr;
}

// "link.nic.gbytes_per_s=12.5": the tables on the way must be there, the last key need not.
void set(toml::table& document, const std::string& setting) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' is not a setting; write link.nic.gbytes_per_s=12.5", setting));
  const auto words = split(std::string_view(setting).substr(0, equals), '.');
  auto* table = &document;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    auto* node = table->get(words[i]);
    const bool is_list = node != nullptr && node->is_array();
    table = entry_of(node, is_list ? words[i + 1] : "");
    if (table == nullptr)
      throw Error(Errc::invalid_argument,
                  fmt::format("there is no '{}' in the network to set {} in", words[i], setting));
    i += is_list ? 1 : 0;
  }
  const auto value = setting.substr(equals + 1);
  try {
    const auto parsed = toml::parse(fmt::format("value = {}", value));
    table->insert_or_assign(words.back(), *parsed.get("value"));
  } catch (const toml::parse_error&) {
    table->insert_or_assign(words.back(), value);  // a text without quotes
  }
}

}  // namespace

Network parse_network(std::string_view text, std::string_view path,
                      std::span<const std::string> settings) {
  try {
    auto document = toml::parse(text, path);
    for (const auto& setting : settings) set(document, setting);
    return read(document, path);
  } catch (const toml::parse_error& error) {
    refuse(path, error.source(), std::string(error.description()));
  }
}

std::string to_toml(const Network& network) {
  std::string text = fmt::format(
      "# What moving and combining bytes costs: docs/format-net.md. Units are decimal.\n"
      "format = \"sinew-net\"\nversion = {}\nname = {}\n",
      kVersion, quoted(network.name));
  if (network.topology.placement == RankOrder::round_robin) text += "placement = \"round_robin\"\n";
  text += "\n[link]\n";
  if (network.eager_bytes >= 0) text += fmt::format("eager_bytes = {:.0f}\n", network.eager_bytes);
  if (network.slice_bytes > 0) text += fmt::format("slice_bytes = {:.0f}\n", network.slice_bytes);
  text += curve_text("one_way", network.one_way) + curve_text("exchange", network.exchange);
  text += links_text(network.topology);
  text += fmt::format("\n[compute]\ncall_us = {}\n", network.call_ps / kUs);
  text += curve_text("reduce", network.reduce) + curve_text("copy", network.copy);
  if (const auto& board = network.board) {
    text += fmt::format("\n[board]\nwait_us = {}\nslot_bytes = {:.0f}\n", board->wait_ps / kUs,
                        board->slot_bytes);
    text += curve_text("publish", board->publish) + curve_text("gather", board->gather);
    text += curve_text("pull", board->pull);
  }
  text += topology_text(network.topology) + disturbances_text(network);
  text += corrections_text(network.corrections);
  text += fmt::format("\n[error]\nlow_factor = {}\nhigh_factor = {}\n", network.error.low,
                      network.error.high);
  if (!network.corrections.empty())
    text += fmt::format("corrected_low_factor = {}\ncorrected_high_factor = {}\n",
                        network.corrected_error.low, network.corrected_error.high);
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
