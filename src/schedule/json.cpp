// Worlds as JSON documents. A range is ["output", first, count]; fields at their defaults are left
// out. docs/format-schedule.md describes it.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "schedule/form.hpp"
#include <sinew/error.hpp>
#include <sinew/schedule.hpp>

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;

constexpr std::array kOps{Op::send,    Op::recv,        Op::recv_reduce,   Op::copy,
                          Op::reduce,  Op::publish,     Op::gather_copy,   Op::gather_reduce,
                          Op::gather_reduce_all};
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

Json range_json(const Chunks& range) { return {name(range.buf), range.first, range.count}; }

Chunks parse_range(const Json& json) {
  if (!json.is_array() || json.size() != 3)
    throw Error(Errc::invalid_argument, "a range is [\"buffer\", first, count]");
  return {parse_name("buffer", json[0].get<std::string>(), kBufs), json[1].get<std::uint32_t>(),
          json[2].get<std::uint32_t>()};
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
  step.round = json.at("round").get<std::uint32_t>();
  step.channel = json.value("channel", std::uint16_t{0});
  step.peer = json.value("peer", -1);
  step.group = json.value("group", -1);
  if (json.contains("src")) step.src = parse_range(json["src"]);
  if (json.contains("dst")) step.dst = parse_range(json["dst"]);
  if (json.contains("board")) step.board = parse_range(json["board"]);
  return step;
}

Json schedule_json(const Schedule& schedule) {
  Json steps = Json::array();
  for (const auto& step : schedule.steps) steps.push_back(step_json(step));
  Json json{{"name", schedule.name},     {"rank", schedule.rank},     {"size", schedule.size},
            {"chunks", schedule.chunks}, {"rounds", schedule.rounds}};
  if (!schedule.groups.empty()) json["groups"] = schedule.groups;
  if (!schedule.scratch_like.empty()) json["scratch_like"] = schedule.scratch_like;
  json["steps"] = std::move(steps);
  return json;
}

Schedule parse_one(const Json& json) {
  Schedule schedule;
  schedule.name = json.at("name").get<std::string>();
  schedule.rank = json.at("rank").get<int>();
  schedule.size = json.at("size").get<int>();
  schedule.chunks = json.at("chunks").get<std::array<std::uint32_t, 4>>();
  schedule.rounds = json.at("rounds").get<std::uint32_t>();
  schedule.groups = json.value("groups", schedule.groups);
  schedule.scratch_like = json.value("scratch_like", schedule.scratch_like);
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
    if (json.value("schema", "") != "sinew-schedule" || json.value("version", 0) != kVersion)
      throw Error(Errc::invalid_argument,
                  fmt::format("this is not a sinew-schedule document of version {}", kVersion));
    world.collective = parse_collective(json.at("collective").get<std::string>());
    world.root = json.value("root", 0);
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
