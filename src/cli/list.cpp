// `sinew list`: the registry for people, and what each algorithm moves, counted from its schedules.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/closed_form.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "model/traffic.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

struct About {
  std::string_view does;
  std::string_view message;  // what S stands for
  std::string_view training;
};

About about(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return {"every rank gets the combination of all vectors", "the vector",
              "gradients of data-parallel training (DDP, ZeRO-1/2), each bucket of\n"
              "each step; partial sums of tensor parallelism"};
    case Collective::reduce:
      return {"the root gets the combination of all vectors", "the vector",
              "sums for one owner: parameter servers, metrics; rare where training\n"
              "is sharded"};
    case Collective::broadcast:
      return {"every rank gets the root's vector", "the vector",
              "initial or reloaded weights, and workers that join later"};
    case Collective::allgather:
      return {"every rank gets the parts of all, in rank order", "the output",
              "sharded parameters made whole before they are used (FSDP, ZeRO-3);\n"
              "activations of sequence parallelism"};
    case Collective::reduce_scatter:
      return {"each rank gets its part of the combination", "the input",
              "gradients that end in the shard of their owner (FSDP, ZeRO-3);\n"
              "sequence parallelism"};
    case Collective::alltoall:
      return {"each rank gets its part of every rank's vector", "the input",
              "tokens on their way to experts and back (MoE); switching the\n"
              "sharded dimension in tensor and sequence parallelism"};
    case Collective::scatter:
      return {"each rank gets its part of the root's vector", "the input",
              "handing out data at the start; samplers have mostly replaced it"};
    case Collective::gather:
      return {"the root gets the parts of all, in rank order", "the output",
              "metrics and validation results; seldom on the hot path"};
    case Collective::barrier:
      return {"nobody leaves before everybody has come", "nothing",
              "start and end of phases: checkpoints, timing"};
  }
  return {};
}

// Where an algorithm fits, found by asking it.
struct Needs {
  char letter;
  std::string_view text;
};
Needs needs(const Algorithm& algorithm) {
  constexpr std::array kTwoNodes{0, 0, 0, 1, 1, 1, 1, 1}, kEqualNodes{0, 0, 0, 0, 1, 1, 1, 1};
  constexpr Capabilities kNothing{}, kBoard{.board = true}, kPull{.board = true, .pull = true};
  constexpr auto kAll = kOneHost;
  const Place six{.size = 6, .node_of = {}}, eight{.size = 8, .node_of = {}};
  const Place nodes{.size = 8, .node_of = kTwoNodes}, equal{.size = 8, .node_of = kEqualNodes};
  if (algorithm.fits(six, kNothing)) return {'-', "anything"};
  if (algorithm.fits(eight, kNothing)) return {'2', "a power of two of ranks"};
  if (algorithm.fits(eight, kBoard)) return {'m', "shared memory"};
  if (algorithm.fits(eight, kPull)) return {'x', "leave to read each other's memory"};
  if (algorithm.fits(eight, kAll)) return {'b', "buffers in shared memory"};
  if (algorithm.fits(nodes, kAll)) return {'n', "several nodes"};
  if (algorithm.fits(equal, kAll)) return {'e', "several nodes of one size"};
  return {'?', "a special place"};
}

std::string letters(const Algorithm& algorithm) {
  const auto& traits = algorithm.traits;
  return {traits.pipelines ? 'p' : '-', traits.rank_order ? 'r' : '-', traits.in_place ? 'i' : '-',
          traits.ragged ? 'v' : '-', needs(algorithm).letter};
}

// "1.75 S", "S", "-": an amount as a multiple of the message.
std::string share(std::uint64_t chunks, std::uint32_t message) {
  if (chunks == 0) return "-";
  const double multiple = static_cast<double>(chunks) / message;
  if (chunks == message) return "S";
  return multiple < 100 ? fmt::format("{:.3g} S", multiple) : fmt::format("{:.0f} S", multiple);
}

// One line of a cost table: some of the ranks.
struct CostRow {
  std::string who;  // "", "root" or "others"
  Traffic most;
};
struct Costs {
  WorldTraffic world;
  std::vector<CostRow> rows;
  std::string nodes;  // of algorithms that need several
  std::string refusal;
};

Costs costs(const Algorithm& algorithm, int size, std::uint32_t segments,
            std::vector<int> node_of) {
  Costs result;
  if (node_of.empty()) {
    node_of = default_nodes(algorithm, size);
    if (!node_of.empty()) result.nodes = "on two nodes";
  }
  try {
    result.world = traffic(make_world(algorithm, size, 0, segments, node_of));
  } catch (const Error& error) {
    result.refusal = error.what();
    return result;
  }
  const auto& ranks = result.world.ranks;
  const auto root = ranks.front();
  const auto others = busiest({ranks.begin() + 1, ranks.end()});
  if (has_root(algorithm.collective) && size > 1 && root != others)
    result.rows = {{"root", root}, {"others", others}};
  else
    result.rows = {{"", busiest(ranks)}};
  return result;
}

constexpr std::array kAmounts{&Traffic::sent, &Traffic::received, &Traffic::written,
                              &Traffic::read};

// "1.75 S = 2 (P-1)/P S" for every amount of `costs` that follows a formula in P.
void note_forms(const Algorithm& algorithm, const Costs& costs, std::set<std::string>& notes) {
  std::vector<Costs> tried;
  for (const int size : kFormSizes) tried.push_back(sinew::costs(algorithm, size, 1, {}));
  for (std::size_t row = 0; row < costs.rows.size(); ++row)
    for (const auto amount : kAmounts) {
      std::vector<double> multiples;
      for (const auto& other : tried)
        if (row < other.rows.size() && other.world.message > 0)
          multiples.push_back(static_cast<double>(other.rows[row].most.*amount) /
                              other.world.message);
      const auto form = closed_form(multiples);
      const auto value = costs.rows[row].most.*amount;
      if (!form.empty() && value > 0)
        notes.insert(fmt::format("{} = {}", share(value, costs.world.message), form));
    }
}

Json cost_json(const Costs& costs) {
  if (!costs.refusal.empty()) return {{"refusal", costs.refusal}};
  const auto multiple = [&](std::uint64_t chunks) {
    return costs.world.message == 0 ? 0.0 : static_cast<double>(chunks) / costs.world.message;
  };
  Json ranks = Json::array();
  for (const auto& [who, most] : costs.rows)
    ranks.push_back({{"who", who.empty() ? "every rank" : who},
                     {"sends", most.sends},
                     {"recvs", most.recvs},
                     {"sent", multiple(most.sent)},
                     {"received", multiple(most.received)},
                     {"written", multiple(most.written)},
                     {"read", multiple(most.read)}});
  return {{"rounds", costs.world.rounds}, {"nodes", costs.nodes.empty() ? 1 : 2}, {"ranks", ranks}};
}

Json algorithm_json(const Algorithm& algorithm) {
  const auto& traits = algorithm.traits;
  const auto what = about(algorithm.collective);
  std::string training(what.training);
  for (auto& letter : training)
    if (letter == '\n') letter = ' ';
  return {{"collective", name(algorithm.collective)},
          {"algorithm", algorithm.name},
          {"summary", algorithm.summary},
          {"does", what.does},
          {"message", what.message},
          {"training", training},
          {"needs", needs(algorithm).text},
          {"pipelines", traits.pipelines},
          {"rank_order", traits.rank_order},
          {"in_place", traits.in_place},
          {"ragged", traits.ragged}};
}

void print_plain(const std::vector<Collective>& collectives) {
  const Paint paint(stdout);
  for (const auto collective : collectives) {
    fmt::print("{}: {}\n", paint.bold(name(collective)), about(collective).does);
    Table table({{""}, {""}, {""}});
    for (const auto* row : algorithms_of(collective))
      table.add({std::string(row->name), letters(*row), std::string(row->summary)});
    fmt::print("{}\n", table.text());
  }
  fmt::print(
      "p pipelines in segments   r combines in rank order (deterministic)\n"
      "i works in place          v works with ragged parts\n"
      "needs: m shared memory  b buffers in it  2 a power of two  n several nodes\n"
      "       e several nodes of one size  x leave to read other ranks' memory\n");
}

// Indented lines of at most 80 columns.
std::string wrapped_parts(const std::set<std::string>& parts, std::string_view separator) {
  std::string text, line;
  for (const auto& part : parts) {
    if (line.size() + separator.size() + part.size() > 76)
      text += "  " + std::exchange(line, "") + "\n";
    line += line.empty() ? part : fmt::format("{}{}", separator, part);
  }
  return text + "  " + line + "\n";
}

void print_costs(const std::vector<Collective>& collectives, int size, std::uint32_t segments,
                 const std::vector<int>& node_of) {
  const Paint paint(stdout);
  for (const auto collective : collectives) {
    const auto what = about(collective);
    fmt::print("{}: {}\nTraining: {}.\nP = {}, S is {}:\n", paint.bold(name(collective)), what.does,
               what.training, size, what.message);
    using enum Align;
    Table table({{"algorithm"},
                 {"rounds", right},
                 {"sends", right},
                 {"recvs", right},
                 {"sent", right},
                 {"received", right},
                 {"written", right},
                 {"read", right}});
    std::string notes;
    std::set<std::string> forms;
    for (const auto* row : algorithms_of(collective)) {
      const auto cost = costs(*row, size, segments, node_of);
      if (!cost.nodes.empty()) notes += fmt::format("  {}: {}\n", row->name, cost.nodes);
      if (segments == 1 && node_of.empty()) note_forms(*row, cost, forms);
      if (!cost.refusal.empty()) table.add({std::string(row->name), "does", "not", "fit"});
      for (const auto& [who, most] : cost.rows) {
        const auto label =
            who.empty() ? std::string(row->name) : fmt::format("{} {}", row->name, who);
        const auto part = [&](std::uint64_t chunks) { return share(chunks, cost.world.message); };
        table.add({label, std::to_string(cost.world.rounds), std::to_string(most.sends),
                   std::to_string(most.recvs), part(most.sent), part(most.received),
                   part(most.written), part(most.read)});
      }
    }
    if (!forms.empty() && std::has_single_bit(static_cast<unsigned>(size)))
      notes += wrapped_parts(forms, "; ");
    fmt::print("{}{}\n", table.text(), notes);
  }
  fmt::print(
      "Counted from the schedules; each figure is that of the busiest rank.\n"
      "written, read: shared memory that other ranks read, or that is theirs.\n");
}

}  // namespace

int run_list(int argc, char** argv) {
  CLI::App app{"Lists the algorithms of every collective, or of one.", "sinew list"};
  std::string collective, ranks, nodes;
  std::uint32_t segments = 1;
  bool cost = false, json = false;
  app.add_option("collective", collective, "only this one, e.g. allreduce");
  app.add_flag("--cost", cost, "rounds, messages and bytes a rank, as multiples of the message");
  app.add_option("-p,--ranks", ranks, "ranks for --cost (default 8)");
  app.add_option("--segments", segments, "pipeline depth for --cost")->check(between(1, 4096));
  app.add_option("--nodes", nodes, "node map for --cost, e.g. 2x4");
  app.add_flag("--json", json, "one JSON document");
  if (const auto status = parse(app, argc, argv)) return *status;

  std::vector<Collective> collectives(kCollectives.begin(), kCollectives.end());
  if (!collective.empty()) collectives = {parse_collective(collective)};
  cost |= !ranks.empty() || !nodes.empty();
  const auto node_of = parse_nodes(nodes);
  const int size = one_size(ranks.empty() && nodes.empty() ? "8" : ranks, node_of);
  if (json) {
    Json rows = Json::array();
    for (const auto one : collectives)
      for (const auto* row : algorithms_of(one)) {
        auto entry = algorithm_json(*row);
        if (cost) entry["cost"] = cost_json(costs(*row, size, segments, node_of));
        rows.push_back(std::move(entry));
      }
    Json document{{"schema", "sinew-list"}, {"version", 1}, {"sinew", SINEW_VERSION}};
    if (cost) document["ranks"] = size;
    document["algorithms"] = std::move(rows);
    fmt::print("{}\n", document.dump(1));
  } else if (cost) {
    print_costs(collectives, size, segments, node_of);
  } else {
    print_plain(collectives);
  }
  return kFine;
}

}  // namespace sinew
