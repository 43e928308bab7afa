#include "model/chakra.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <unordered_map>

#include <sinew/error.hpp>

namespace sinew {
namespace {

using Json = nlohmann::json;

// By number in the schema, which the names below repeat.
constexpr std::array kCollectives{
    std::pair{"ALL_REDUCE", Collective::allreduce},
    std::pair{"REDUCE", Collective::reduce},
    std::pair{"ALL_GATHER", Collective::allgather},
    std::pair{"GATHER", Collective::gather},
    std::pair{"SCATTER", Collective::scatter},
    std::pair{"BROADCAST", Collective::broadcast},
    std::pair{"ALL_TO_ALL", Collective::alltoall},
    std::pair{"REDUCE_SCATTER", Collective::reduce_scatter},
    std::pair{"REDUCE_SCATTER_BLOCK", Collective::reduce_scatter},
    std::pair{"BARRIER", Collective::barrier},
};
constexpr int kCompNode = 4, kCollNode = 7;

[[noreturn]] void refuse(std::string_view path, const std::string& what) {
  throw Error(Errc::invalid_argument, fmt::format("{}: {}", path, what));
}

// Protocol buffers print 64-bit numbers as texts.
double number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return -1;
  const auto& text = value.get_ref<const std::string&>();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() && !text.empty() ? number : -1;
}

const Json* field(const Json& object, const char* camel, const char* snake) {
  if (const auto at = object.find(camel); at != object.end()) return &*at;
  if (const auto at = object.find(snake); at != object.end()) return &*at;
  return nullptr;
}

// The value of an attribute, whatever type it was stored as.
const Json* attribute(const Json& node, std::string_view name) {
  const auto* list = field(node, "attr", "attr");
  if (list == nullptr || !list->is_array()) return nullptr;
  for (const auto& each : *list) {
    if (!each.is_object() || each.value("name", "") != name) continue;
    for (const auto& [key, value] : each.items())
      if (key != "name" && key != "docString" && key != "doc_string") return &value;
  }
  return nullptr;
}

ChakraNode::Kind kind_of(const Json& node) {
  const auto* type = field(node, "type", "type");
  if (type == nullptr) return ChakraNode::Kind::other;
  if (*type == "COMP_NODE" || *type == kCompNode) return ChakraNode::Kind::compute;
  if (*type == "COMM_COLL_NODE" || *type == kCollNode) return ChakraNode::Kind::collective;
  return ChakraNode::Kind::other;
}

void read_collective(const Json& json, ChakraNode& node, std::string_view path) {
  const auto* type = attribute(json, "comm_type");
  const auto* size = attribute(json, "comm_size");
  if (type == nullptr || size == nullptr || number_of(*size) < 0)
    refuse(path, fmt::format("node {} is a collective without comm_type or comm_size", node.id));
  for (std::size_t i = 0; i < kCollectives.size(); ++i)
    if (number_of(*type) == static_cast<double>(i) || *type == kCollectives[i].first) {
      node.collective = kCollectives[i].second;
      node.bytes = number_of(*size);
      return;
    }
  refuse(path, fmt::format("node {} has the unknown comm_type {}", node.id, type->dump()));
}

std::vector<Json> nodes_in(std::string_view text, std::string_view path) {
  std::vector<Json> nodes;
  // Converters print one value after another: find where each ends by its braces.
  std::size_t at = 0;
  while (at < text.size()) {
    if (std::isspace(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
      continue;
    }
    int depth = 0;
    bool quoted = false;
    auto end = at;
    for (; end < text.size(); ++end) {
      const char c = text[end];
      if (quoted) {
        if (c == '\\')
          ++end;
        else if (c == '"')
          quoted = false;
        continue;
      }
      if (c == '"') quoted = true;
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth <= 0) break;
    }
    const auto value =
        Json::parse(text.substr(at, std::min(end + 1, text.size()) - at), nullptr, false);
    if (value.is_discarded()) refuse(path, fmt::format("not JSON at byte {}", at));
    const Json* list = value.is_array() ? &value : field(value, "nodes", "node");
    if (list != nullptr && list->is_array())
      nodes.insert(nodes.end(), list->begin(), list->end());
    else if (value.is_object())
      nodes.push_back(value);
    at = end + 1;
  }
  return nodes;
}

void read_dependences(const Json& json,
                      const std::unordered_map<std::uint64_t, std::size_t>& places,
                      ChakraNode& node, std::string_view path) {
  for (const auto& [camel, snake] :
       {std::pair{"ctrlDeps", "ctrl_deps"}, std::pair{"dataDeps", "data_deps"}}) {
    const auto* list = field(json, camel, snake);
    if (list == nullptr || !list->is_array()) continue;
    for (const auto& each : *list) {
      const auto at = places.find(static_cast<std::uint64_t>(std::max(0.0, number_of(each))));
      if (at == places.end())
        refuse(path,
               fmt::format("node {} waits for node {}, which is not there", node.id, each.dump()));
      node.after.push_back(at->second);
    }
  }
}

}  // namespace

ChakraTrace parse_chakra(std::string_view text, std::string_view path) {
  ChakraTrace trace;
  std::vector<Json> kept;
  std::unordered_map<std::uint64_t, std::size_t> places;
  std::map<std::string, int> passed_over;
  for (auto& json : nodes_in(text, path)) {
    if (!json.is_object() || field(json, "type", "type") == nullptr) continue;  // metadata
    ChakraNode node;
    const auto* id = field(json, "id", "id");  // 0 is left out by the printer
    node.id = id == nullptr ? 0 : static_cast<std::uint64_t>(std::max(0.0, number_of(*id)));
    node.kind = kind_of(json);
    if (const auto* takes = field(json, "durationMicros", "duration_micros"))
      node.duration_us = std::max(0.0, number_of(*takes));
    if (node.kind == ChakraNode::Kind::collective) read_collective(json, node, path);
    if (node.kind == ChakraNode::Kind::other) ++passed_over[json["type"].dump()];
    if (!places.emplace(node.id, trace.nodes.size()).second)
      refuse(path, fmt::format("node {} is there twice", node.id));
    trace.nodes.push_back(std::move(node));
    kept.push_back(std::move(json));
  }
  if (trace.nodes.empty()) refuse(path, "not a Chakra trace: there is no node with a type");
  for (std::size_t i = 0; i < trace.nodes.size(); ++i)
    read_dependences(kept[i], places, trace.nodes[i], path);
  for (const auto& [type, count] : passed_over)
    trace.notes.push_back(fmt::format("{} nodes of type {} take no time here", count, type));
  return trace;
}

ChakraTimes replay_chakra(const ChakraTrace& trace, CostBook& costs, int workers) {
  const auto count = trace.nodes.size();
  std::vector<std::vector<std::size_t>> next(count);
  std::vector<std::size_t> open(count);
  std::vector<double> ready(count);
  for (std::size_t i = 0; i < count; ++i) {
    open[i] = trace.nodes[i].after.size();
    for (const auto before : trace.nodes[i].after) next[before].push_back(i);
  }
  using Entry = std::pair<double, std::size_t>;  // when it could begin, and its place
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> waiting;
  for (std::size_t i = 0; i < count; ++i)
    if (open[i] == 0) waiting.emplace(0, i);
  ChakraTimes times;
  double computing = 0, communicating = 0, slack_low = 0, slack_high = 0;  // streams free from then
  std::size_t done = 0;
  std::set<std::string> names;
  for (; !waiting.empty(); ++done) {
    const auto [when, i] = waiting.top();
    waiting.pop();
    const auto& node = trace.nodes[i];
    double end = when;
    if (node.kind == ChakraNode::Kind::compute) {
      end = computing = std::max(when, computing) + node.duration_us / 1e3;
      times.compute_ms += node.duration_us / 1e3;
    } else if (node.kind == ChakraNode::Kind::collective && workers > 1) {
      const auto& cost = costs.best(node.collective, workers, node.bytes);
      const double takes = static_cast<double>(cost.end.at) / 1e9;
      end = communicating = std::max(when, communicating) + takes;
      times.communication_ms += takes;
      slack_low += takes - cost.low_ps / 1e9;
      slack_high += cost.high_ps / 1e9 - takes;
      times.bytes_per_worker += cost.bytes_per_rank;
      names.insert(cost.algorithm);
    }
    times.step_ms = std::max(times.step_ms, end);
    for (const auto after : next[i]) {
      ready[after] = std::max(ready[after], end);
      if (--open[after] == 0) waiting.emplace(ready[after], after);
    }
  }
  if (done < count)
    throw Error(Errc::invalid_argument, "nodes of the trace wait for each other in a circle");
  times.exposed_ms = times.step_ms - times.compute_ms;
  const double share =
      times.communication_ms > 0 ? std::max(0.0, times.exposed_ms) / times.communication_ms : 0;
  times.low_ms = times.step_ms - slack_low * share;
  times.high_ms = times.step_ms + slack_high * share;
  times.algorithms = fmt::format("{}", fmt::join(names, " + "));
  return times;
}

}  // namespace sinew
