#include "model/predict.hpp"

#include <algorithm>
#include <cmath>

#include "model/bounds.hpp"
#include "model/correction.hpp"
#include "model/crowding.hpp"
#include "model/select.hpp"

namespace sinew {
namespace {

Capabilities capabilities_of(const Network& network) {
  return {.board = network.board.has_value(),
          .pull = network.board && !network.board->pull.is_free()};
}

// What the asker said that this answer does not depend on.
std::vector<std::string> without_effect(const Prediction& answer, const Question& question,
                                        const Network& network, const Simulated& outcome) {
  std::vector<std::string> inputs;
  const auto add = [&](bool idle, std::string_view input) {
    if (idle) inputs.emplace_back(input);
  };
  const auto end = outcome.end;
  const auto& topology = network.topology;
  add(network.one_way.least_alpha_ps() > 0 && end.alpha == 0, "alpha");
  add(end.beta == 0, "bandwidth");
  add(!network.exchange.is_free() && !outcome.used_exchange, "exchange");
  add(!(network.reduce.is_free() && network.copy.is_free()) && end.gamma == 0, "gamma");
  add(network.eager_bytes >= 0 && !outcome.used_eager, "eager");
  add(network.board && outcome.shared_bytes == 0, "board");
  add(question.segments > 1 && !answer.algorithm->traits.pipelines, "segments");
  add(question.root != 0 && !has_root(question.collective), "root");
  const Place anywhere{.size = question.ranks, .node_of = {}};
  const bool corrected_for_nodes =
      answer.correction !=
      correction(network, *answer.algorithm, anywhere, question.bytes).value_or(1);
  add(!question.node_of.empty() && !corrected_for_nodes &&
          answer.algorithm->fits(anywhere, capabilities_of(network)),
      "nodes");
  for (std::size_t i = 0; i < topology.links.size(); ++i)
    add(!outcome.used_links[i], "link." + topology.links[i].name);
  for (const auto& traits : topology.ranks)
    add(traits.ranks.first() >= question.ranks, "rank " + traits.ranks.text());
  return inputs;
}

bool varies(const Network& network) {
  return network.noise.deviation > 0 || network.stragglers.share > 0;
}

// Several runs of chance, each with its own seed: their mean, and between which times nine of ten
// lie.
Simulated sampled(const Workload& workload, Network network, const SimulateOptions& options,
                  int samples, Picoseconds& low, Picoseconds& high) {
  std::vector<Simulated> outcomes;
  for (int i = 0; i < samples; ++i) {
    outcomes.push_back(simulate(workload, network, options));
    ++network.noise.seed;
    ++network.stragglers.seed;
  }
  Moment sum;
  for (const auto part : {&Moment::at, &Moment::alpha, &Moment::beta, &Moment::gamma}) {
    double total = 0;
    for (const auto& outcome : outcomes) total += static_cast<double>(outcome.end.*part);
    sum.*part = std::llround(total / samples);
  }
  std::sort(outcomes.begin(), outcomes.end(),
            [](const auto& a, const auto& b) { return a.end.at < b.end.at; });
  const auto tail = static_cast<std::size_t>(0.05 * samples);
  low = outcomes[tail].end.at;
  high = outcomes[outcomes.size() - 1 - tail].end.at;
  outcomes.front().end = sum;
  return outcomes.front();
}

}  // namespace

std::vector<int> nodes_of(const Question& question, const Network& network) {
  return question.node_of.empty() ? network.topology.node_of(question.ranks) : question.node_of;
}

bool fits(const Algorithm& algorithm, const Question& question, const Network& network) {
  const auto node_of = nodes_of(question, network);
  return algorithm.fits({.size = question.ranks, .node_of = node_of}, capabilities_of(network));
}

Prediction predict(const Algorithm& algorithm, const Question& question, const Network& given,
                   const SimulateOptions& options) {
  Prediction answer{.algorithm = &algorithm, .ranks = question.ranks, .bytes = question.bytes};
  answer.segments = question.segments > 0 && algorithm.traits.pipelines
                        ? question.segments
                        : segments_for(algorithm, static_cast<std::uint64_t>(question.bytes), 0);
  const auto network = crowded(given, question.ranks, answer.warnings);
  const auto node_of = nodes_of(question, network);
  const Place place{.size = question.ranks,
                    .root = question.root,
                    .segments = answer.segments,
                    .node_of = node_of};
  auto workload = workload_of(algorithm, place, question.bytes);
  workload.in_place = is_in_place(question.collective);
  Picoseconds low = 0, high = 0;
  const auto outcome = varies(network) ? sampled(workload, network, options,
                                                 std::max(question.samples, 1), low, high)
                                       : simulate(workload, network, options);
  const auto& end = outcome.end;
  if (!varies(network)) low = high = end.at;
  const auto corrected = correction(network, algorithm, place, question.bytes);
  const auto& error = corrected ? network.corrected_error : network.error;
  answer.correction = corrected.value_or(1);
  answer.time = std::llround(static_cast<double>(end.at) * answer.correction);
  answer.low = static_cast<double>(low) * answer.correction * error.low;
  answer.high = static_cast<double>(high) * answer.correction * error.high;
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
  if (answer.correction < 1)  // what was measured below a bound of parts has shown that it is none
    answer.lower_bound = std::min(answer.lower_bound, static_cast<double>(answer.time));
  answer.no_effect = without_effect(answer, question, network, outcome);
  return answer;
}

}  // namespace sinew
