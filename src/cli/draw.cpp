// `sinew draw`: one world of schedules, for people (text, SVG) or for other programs (JSON, GOAL).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <sinew/draw.hpp>
#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "schedule/goal.hpp"

namespace sinew {
namespace {

struct DrawWanted {
  std::string collective, algo, ranks, nodes, schedule;
  int root = 0;
  std::uint32_t segments = 1;
};

World wanted_world(const DrawWanted& wanted) {
  if (!wanted.schedule.empty()) {
    if (!wanted.collective.empty())
      throw Error(Errc::invalid_argument, "--schedule draws a document; leave the collective out");
    return parse_world(read_text(wanted.schedule));
  }
  if (wanted.collective.empty())
    throw Error(Errc::invalid_argument, "draw what? Name a collective, or say --schedule FILE");
  const auto collective = parse_collective(wanted.collective);
  if (wanted.algo.empty() || wanted.algo == "all") {
    std::vector<std::string_view> names;
    for (const auto* row : algorithms_of(collective)) names.push_back(row->name);
    throw Error(Errc::invalid_argument,
                fmt::format("which algorithm? Say --algo with one of: {}", fmt::join(names, ", ")));
  }
  const auto& algorithm = find_algorithm(collective, wanted.algo);
  auto node_of = parse_nodes(wanted.nodes);
  const int size = one_size(wanted.ranks, node_of);
  if (node_of.empty()) node_of = default_nodes(algorithm, size);
  return make_world(algorithm, size, wanted.root, wanted.segments, node_of);
}

}  // namespace

int run_draw(int argc, char** argv) {
  CLI::App app{"Draws a schedule: rounds down, ranks across, arrows with their chunks.",
               "sinew draw"};
  DrawWanted wanted;
  std::string format = "text", bytes = "1M";
  bool json = false;
  app.add_option("collective", wanted.collective, "e.g. allreduce");
  app.add_option("--algo", wanted.algo, "the algorithm, e.g. ring");
  app.add_option("-p,--ranks", wanted.ranks, "how many ranks");
  app.add_option("--root", wanted.root, "the root, where there is one");
  app.add_option("--segments", wanted.segments, "pipeline depth")->check(between(1, 4096));
  app.add_option("--nodes", wanted.nodes, "node map: 2x4 is two nodes of four ranks");
  app.add_option("--format", format, "text, svg, html (to play with), json or goal");
  app.add_option("--bytes", bytes, "size of the message, for goal (default 1M)");
  app.add_option("--schedule", wanted.schedule, "a schedule document instead (- reads stdin)");
  app.add_flag("--json", json, "the same as --format json");
  if (const auto status = parse(app, argc, argv)) return *status;
  if (json) format = "json";

  constexpr std::array<std::string_view, 5> kFormats{"text", "svg", "html", "json", "goal"};
  if (std::find(kFormats.begin(), kFormats.end(), format) == kFormats.end())
    throw Error(Errc::invalid_argument, unknown("format", format, kFormats));
  const auto message_bytes = parse_bytes(bytes);
  const auto world = wanted_world(wanted);
  auto text = format == "text"   ? draw_text(world, terminal_columns())
              : format == "svg"  ? draw_svg(world)
              : format == "html" ? draw_html(world, command_line("sinew draw", argc, argv))
              : format == "goal" ? to_goal(world, message_bytes)
                                 : to_json(world);
  if (text.empty() || text.back() != '\n') text += '\n';
  fmt::print("{}", text);
  return kFine;
}

}  // namespace sinew
