#include "model/predict.hpp"

#include "model/bounds.hpp"
#include "model/select.hpp"

namespace sinew {
namespace {

// What the asker said that this answer does not depend on.
std::vector<std::string> without_effect(const Prediction& answer, const Question& question,
                                        const Network& network, const Simulated& outcome) {
  std::vector<std::string> inputs;
  const auto add = [&](bool idle, std::string_view input) {
    if (idle) inputs.emplace_back(input);
  };
  const auto end = outcome.end;
  add(network.one_way.least_alpha_ps() > 0 && end.alpha == 0, "alpha");
  add(end.beta == 0, "bandwidth");
  add(!network.exchange.is_free() && !outcome.used_exchange, "exchange");
  add(!(network.reduce.is_free() && network.copy.is_free()) && end.gamma == 0, "gamma");
  add(network.eager_bytes >= 0 && !outcome.used_eager, "eager");
  add(network.board && outcome.shared_bytes == 0, "board");
  add(question.segments > 1 && !answer.algorithm->traits.pipelines, "segments");
  add(question.root != 0 && !has_root(question.collective), "root");
  add(!question.node_of.empty() && answer.algorithm->fits({.size = question.ranks, .node_of = {}},
                                                          {.board = network.board.has_value()}),
      "nodes");
  return inputs;
}

}  // namespace

bool fits(const Algorithm& algorithm, const Question& question, const Network& network) {
  const bool board = network.board.has_value();
  return algorithm.fits({.size = question.ranks, .node_of = question.node_of},
                        {.board = board, .across_nodes = false});
}

Prediction predict(const Algorithm& algorithm, const Question& question, const Network& network,
                   const SimulateOptions& options) {
  Prediction answer{.algorithm = &algorithm, .ranks = question.ranks, .bytes = question.bytes};
  answer.segments = question.segments > 0 && algorithm.traits.pipelines
                        ? question.segments
                        : segments_for(algorithm, static_cast<std::uint64_t>(question.bytes), 0);
  const Place place{.size = question.ranks,
                    .root = question.root,
                    .segments = answer.segments,
                    .node_of = question.node_of};
  const auto outcome = simulate(workload_of(algorithm, place, question.bytes), network, options);
  const auto& end = outcome.end;
  answer.time = end.at;
  answer.low = static_cast<double>(end.at) * network.error.low;
  answer.high = static_cast<double>(end.at) * network.error.high;
  if (end.at > 0) {
    const auto share = [&](Picoseconds part) {
      return static_cast<double>(part) / static_cast<double>(end.at);
    };
    answer.alpha = share(end.alpha);
    answer.beta = share(end.beta);
    answer.gamma = share(end.gamma);
    answer.wait = share(end.at - end.alpha - end.beta - end.gamma);
  }
  answer.idle = outcome.idle;
  answer.messages = outcome.messages;
  answer.bytes_per_rank = outcome.busiest_bytes + outcome.shared_bytes;
  answer.lower_bound = lower_bound_ps(question.collective, question.ranks, question.bytes, network);
  answer.no_effect = without_effect(answer, question, network, outcome);
  return answer;
}

}  // namespace sinew
