// Worlds as JSON documents. A range is ["output", first, count]; fields at their defaults are left
// out. docs/format-schedule.md describes it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include <sinew/error.hpp>
#include <sinew/schedule.hpp>
#include "base/text.hpp"
#include "schedule/form.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;

constexpr std::array kOps{Op::send,        Op::recv,          Op::recv_reduce,
                          Op::copy,        Op::reduce,        Op::publish,
                          Op::gather_copy, Op::gather_reduce, Op::gather_reduce_all};
constexpr std::array kBufs{Buf::input, Buf::output, Buf::scratch, Buf::board};

template <class E, std::size_t N>
E parse_name(std::string_view kind, const std::string& text, const std::array<E, N>& all) {
  std::vector<std::string_view> names;
  for (const E value : all) {
    if (name(value) == text) return value;
    names.push_back(name(value));
  }
  throw Error(Errc::invalid_argument, unknown(kind, text, names));
}

// The library converts -1, 1.5 and 2^32 without a word.
template <class T>
T integer(const Json& json) {
  const bool fits = json.is_number_unsigned()
                        ? std::in_range<T>(json.get<std::uint64_t>())
                        : json.is_number_integer() && std::in_range<T>(json.get<std::int64_t>());
  if (!fits)
    throw Error(Errc::invalid_argument, fmt::format("{} is no whole number in range", json.dump()));
  return json.get<T>();
}
template <class T>
T integer(const Json& json, const char* key, T otherwise) {
  return json.contains(key) ? integer<T>(json[key]) : otherwise;
}
template <class T>
std::vector<T> integers(const Json& json) {
  if (!json.is_array()) throw Error(Errc::invalid_argument, "a list of numbers is missing");
  std::vector<T> result;
  for (const auto& one : json) result.push_back(integer<T>(one));
  return result;
}

Json range_json(const Chunks& range) { return {name(range.buf), range.first, range.count}; }

Chunks parse_range(const Json& json) {
  if (!json.is_array() || json.size() != 3)
    throw Error(Errc::invalid_argument, "a range is [\"buffer\", first, count]");
  return {parse_name("buffer", json[0].get<std::string>(), kBufs), integer<std::uint32_t>(json[1]),
          integer<std::uint32_t>(json[2])};
}

Json step_json(const Step& step) {
  Json json{{"op", name(step.op)}, {"round", step.round}};
  if (step.channel != 0) json["channel"] = step.channel;
  if (step.peer >= 0) json["peer"] = step.peer;
  if (step.group >= 0) json["group"] = step.group;
  if (step.src != Chunks{}) json["src"] = range_json(step.src);
  if (step.dst != Chunks{}) json["dst"] = range_json(step.dst);
  if (step.board != Chunks{}) json["board"] = range_json(step.board);
  return json;
}

Step parse_step(const Json& json) {
  Step step;
  step.op = parse_name("op", json.at("op").get<std::string>(), kOps);
  step.round = integer<std::uint32_t>(json.at("round"));
  step.channel = integer<std::uint16_t>(json, "channel", 0);
  step.peer = integer<std::int32_t>(json, "peer", -1);
  step.group = integer<std::int32_t>(json, "group", -1);
  if (json.contains("src")) step.src = parse_range(json["src"]);
  if (json.contains("dst")) step.dst = parse_range(json["dst"]);
  if (json.contains("board")) step.board = parse_range(json["board"]);
  return step;
}

Json schedule_json(const Schedule& schedule) {
  Json steps = Json::array();
  for (const auto& step : schedule.steps) steps.push_back(step_json(step));
  Json json{{"name", schedule.name},
            {"rank", schedule.rank},
            {"size", schedule.size},
            {"chunks", schedule.chunks},
            {"rounds", schedule.rounds}};
  if (!schedule.groups.empty()) json["groups"] = schedule.groups;
  if (!schedule.scratch_like.empty()) json["scratch_like"] = schedule.scratch_like;
  if (schedule.by_reference) json["by_reference"] = true;
  json["steps"] = std::move(steps);
  return json;
}

Schedule parse_one(const Json& json) {
  Schedule schedule;
  schedule.name = json.at("name").get<std::string>();
  schedule.rank = integer<int>(json.at("rank"));
  schedule.size = integer<int>(json.at("size"));
  const auto chunks = integers<std::uint32_t>(json.at("chunks"));
  if (chunks.size() != schedule.chunks.size())
    throw Error(Errc::invalid_argument, "chunks are four numbers");
  std::copy(chunks.begin(), chunks.end(), schedule.chunks.begin());
  schedule.rounds = integer<std::uint32_t>(json.at("rounds"));
  if (json.contains("groups"))
    for (const auto& group : json["groups"]) schedule.groups.push_back(integers<int>(group));
  if (json.contains("scratch_like"))
    schedule.scratch_like = integers<std::uint32_t>(json["scratch_like"]);
  if (json.contains("by_reference")) schedule.by_reference = json["by_reference"].get<bool>();
  for (const auto& step : json.at("steps")) {
    try {
      schedule.steps.push_back(parse_step(step));
    } catch (const std::exception& error) {
      throw Error(Errc::invalid_argument,
                  fmt::format("step {}: {}", schedule.steps.size(), error.what()));
    }
  }
  return schedule;
}

}  // namespace

std::string to_json(const World& world) {
  Json ranks = Json::array();
  for (const auto& schedule : world.ranks) ranks.push_back(schedule_json(schedule));
  return Json{{"schema", "sinew-schedule"},
              {"version", kVersion},
              {"collective", name(world.collective)},
              {"root", world.root},
              {"ranks", std::move(ranks)}}
      .dump(1);
}

World parse_world(std::string_view text) {
  World world;
  try {
    const auto json = Json::parse(text);
    if (json.value("schema", "") != "sinew-schedule" ||
        integer<int>(json, "version", 0) != kVersion)
      throw Error(Errc::invalid_argument,
                  fmt::format("this is not a sinew-schedule document of version {}", kVersion));
    world.collective = parse_collective(json.at("collective").get<std::string>());
    world.root = integer<int>(json, "root", 0);
    for (const auto& rank : json.at("ranks")) {
      try {
        world.ranks.push_back(parse_one(rank));
      } catch (const std::exception& error) {
        throw Error(Errc::invalid_argument,
                    fmt::format("rank {}: {}", world.ranks.size(), error.what()));
      }
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(Errc::invalid_argument, fmt::format("schedule file: {}", error.what()));
  }
  if (auto why = malformed(world)) throw Error(Errc::invalid_argument, "schedule file: " + *why);
  return world;
}

}  // namespace sinew
