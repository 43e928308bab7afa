// A world as a page to play with: what every chunk holds after each round, and what the verifier
// says when a step is changed. One file that needs nothing else; without scripts the drawing and
// the table of verdicts remain.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <sinew/draw.hpp>
#include <sinew/error.hpp>
#include "schedule/draw_layout.hpp"
#include "schedule/replay.hpp"
#include "schedule/schedule_page.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostRanks = 16, kMostSteps = 2000;

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  return result;
}

// Nothing in it can end the element it stands in.
std::string embedded(const Json& json) {
  std::string result;
  for (const char c : json.dump()) result += c == '<' ? "\\u003c" : std::string(1, c);
  return result;
}

bool has_input(const World& world, int rank) {
  return rank == world.root ||
         (world.collective != Collective::broadcast && world.collective != Collective::scatter);
}

class Page {
 public:
  explicit Page(const World& world)
      : world_(world), notation_(world), changes_(replay(world)), edits_(try_edits(world)) {}

  std::string write(std::string_view command) {
    std::string facts;
    for (const auto& fact : detail::facts(world_)) facts += fact + ". ";
    std::string page(kSchedulePage);
    fill(page, "title", escaped(detail::title(world_)));
    fill(page, "title", escaped(detail::title(world_)));
    fill(page, "facts", escaped(facts));
    fill(page, "drawing", draw_svg(world_));
    fill(page, "table", table());
    fill(page, "command", escaped(command));
    fill(page, "data", embedded(data()));
    return page;
  }

 private:
  static void fill(std::string& page, std::string_view name, const std::string& text) {
    const auto mark = fmt::format("{{{{{}}}}}", name);
    page.replace(page.find(mark), mark.size(), text);
  }

  [[nodiscard]] Json data() const {
    Json json;
    json["ranks"] = world_.ranks.size();
    json["rounds"] = detail::count_rounds(world_);
    json["combines"] = combines();
    json["buffers"] = buffers();
    json["start"] = Json::array();
    for (const auto& schedule : world_.ranks)
      for (std::uint32_t chunk = 0; has_input(world_, schedule.rank) && chunk < schedule.chunks[0];
           ++chunk)
        json["start"].push_back(
            as_json({schedule.rank, 0, Buf::input, chunk, {{schedule.rank, chunk}}}));
    json["changes"] = Json::array();
    for (const auto& change : changes_) json["changes"].push_back(as_json(change));
    json["steps"] = Json::array();
    for (const auto& schedule : world_.ranks)
      for (std::size_t i = 0; i < schedule.steps.size(); ++i)
        json["steps"].push_back({{"id", id_of(schedule.rank, i)},
                                 {"rank", schedule.rank},
                                 {"round", schedule.steps[i].round},
                                 {"text", notation_.spell(schedule, schedule.steps[i])}});
    json["edits"] = Json::array();
    for (const auto& edit : edits_)
      json["edits"].push_back({{"id", id_of(edit.rank, edit.step)},
                               {"what", edit.what},
                               {"verdict", edit.verdict},
                               {"refused", edit.refused}});
    return json;
  }

  [[nodiscard]] bool combines() const {
    return std::any_of(changes_.begin(), changes_.end(),
                       [](const Change& change) { return change.holds.size() > 1; });
  }

  [[nodiscard]] Json buffers() const {
    auto all = Json::array();
    for (const auto& schedule : world_.ranks) {
      auto mine = Json::array();
      for (const auto buf : {Buf::input, Buf::output, Buf::scratch, Buf::board})
        if (const auto chunks = schedule.chunks[static_cast<std::size_t>(buf)]; chunks > 0)
          mine.push_back({name(buf), chunks});
      all.push_back(std::move(mine));
    }
    return all;
  }

  static Json as_json(const Change& change) {
    auto holds = Json::array();
    for (const auto& leaf : change.holds) holds.push_back({leaf.rank, leaf.chunk});
    return {{"rank", change.rank},
            {"round", change.round},
            {"buf", name(change.buf)},
            {"chunk", change.chunk},
            {"holds", std::move(holds)}};
  }

  static std::string id_of(int rank, std::size_t step) { return fmt::format("{}:{}", rank, step); }

  [[nodiscard]] std::string table() const {
    std::string rows;
    for (const auto& edit : edits_) {
      const auto& schedule = world_.ranks[static_cast<std::size_t>(edit.rank)];
      const auto& step = schedule.steps[edit.step];
      rows += fmt::format(
          "<tr><td>{}</td><td>{}</td><td class=\"step\">{}</td><td>{}</td>"
          "<td class=\"{}\"><strong>{}</strong> {}</td></tr>\n",
          step.round, edit.rank, escaped(notation_.spell(schedule, step)), escaped(edit.what),
          edit.refused ? "refused" : "right", edit.refused ? "Refused." : "Accepted.",
          escaped(edit.verdict));
    }
    return rows;
  }

  const World& world_;
  detail::Notation notation_;
  std::vector<Change> changes_;
  std::vector<Edit> edits_;
};

}  // namespace

std::string draw_html(const World& world, std::string_view command) {
  std::size_t steps = 0;
  for (const auto& schedule : world.ranks) steps += schedule.steps.size();
  if (world.ranks.size() > kMostRanks || steps > kMostSteps)
    throw Error(
        Errc::invalid_argument,
        fmt::format("a page to play with has at most {} ranks and {} steps, this one {} and "
                    "{}; draw fewer ranks, or --format svg",
                    kMostRanks, kMostSteps, world.ranks.size(), steps));
  return Page(world).write(command);
}

}  // namespace sinew
