#include "model/cost_book.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <sinew/error.hpp>
#include "model/ragged.hpp"
#include "model/select.hpp"

namespace sinew {
namespace {

constexpr double kMostSteps = 4e6;  // of all ranks that have to be simulated: about half a second
constexpr int kFew = 512;           // ranks; up to here everything is simulated
constexpr int kMostBruck = 4096;    // ranks of which Bruck and pipelines are simulated
constexpr int kMostRagged = 1024;   // ranks; all of them meet all others

// Messages that one port of rank 0 serves in a row.
double port_messages(const Algorithm& algorithm, int size) {
  double sends = 0, receives = 0;
  for (const auto& step : algorithm.make({.size = size, .node_of = {}}).steps) {
    sends += step.op == Op::send ? 1 : 0;
    receives += step.op == Op::recv || step.op == Op::recv_reduce ? 1 : 0;
  }
  return std::max(sends, receives);
}

// What beginnings of messages take at least where their number grows with the number of ranks,
// told from two small worlds; 0 where it does not.
double beginnings_ps(const Algorithm& algorithm, int ranks, const Network& network) {
  constexpr int kSmall = 32;
  if (!fits(algorithm, {.collective = algorithm.collective, .ranks = kSmall}, network)) return 0;
  const double few = port_messages(algorithm, kSmall);
  if (port_messages(algorithm, 2 * kSmall) < 1.8 * few) return 0;
  return few / kSmall * ranks * network.one_way.least_alpha_ps();
}

// Bruck's algorithms of very many ranks, whose schedules would be as long as there are ranks: a
// message for each binary digit. `tests/model/cost_book_test.cpp` compares with simulations.
Moment bruck(Collective collective, int ranks, double bytes, const Network& network) {
  const auto& curve = network.exchange.is_free() ? network.one_way : network.exchange;
  Moment end;
  for (int digit = 1; digit < ranks; digit *= 2) {
    int parts = std::min(digit, ranks - digit);  // an allgather doubles what it has
    if (collective == Collective::alltoall)      // all parts whose distance has that digit
      parts = ranks / (2 * digit) * digit + std::max(0, ranks % (2 * digit) - digit);
    const auto cost = curve.at(bytes / ranks * parts);
    end.alpha += cost.alpha;
    end.beta += cost.beta;
    const auto copies = network.copy.at(bytes / ranks * parts);
    if (collective == Collective::alltoall) end.gamma += 2 * (copies.alpha + copies.beta);
  }
  const auto rotation = network.copy.at(bytes);
  end.gamma += (rotation.alpha + rotation.beta) * (collective == Collective::alltoall ? 2 : 1);
  end.at = end.alpha + end.beta + end.gamma;
  return end;
}

bool is_bruck(const Algorithm& algorithm) {
  return algorithm.name == "bruck" && (algorithm.collective == Collective::alltoall ||
                                       algorithm.collective == Collective::allgather);
}

}  // namespace

Costed& Costed::operator+=(const Costed& next) {
  end.at += next.end.at;
  end.alpha += next.end.alpha;
  end.beta += next.end.beta;
  end.gamma += next.end.gamma;
  low_ps += next.low_ps;
  high_ps += next.high_ps;
  bytes_per_rank += next.bytes_per_rank;
  messages += next.messages;
  if (algorithm.empty())
    algorithm = next.algorithm;
  else if (!next.algorithm.empty() && algorithm.find(next.algorithm) == std::string::npos)
    algorithm += " + " + next.algorithm;
  return *this;
}

CostBook::CostBook(Network network, std::vector<std::string> algorithms)
    : network_(std::move(network)), wanted_(std::move(algorithms)) {}

const Costed& CostBook::best(Collective collective, int ranks, double bytes, double imbalance,
                             bool private_sizes) {
  const Key key{collective, ranks, bytes, imbalance, private_sizes};
  if (const auto at = known_.find(key); at != known_.end()) return at->second;
  const bool ragged =
      imbalance > 1 && (collective == Collective::alltoall || collective == Collective::allgather);
  auto found = ragged ? find_ragged(collective, ranks, bytes, imbalance)
                      : find(collective, ranks, bytes, private_sizes);
  return known_.emplace(key, std::move(found)).first->second;
}

Costed CostBook::sum(std::span<const Phase> phases, int ranks) {
  Costed total;
  for (const auto& phase : phases)
    total += best(phase.collective, ranks, phase.bytes, phase.imbalance, phase.private_sizes);
  return total;
}

bool CostBook::is_wanted(const Algorithm& algorithm) const {
  return wanted_.empty() ||
         std::find(wanted_.begin(), wanted_.end(), algorithm.name) != wanted_.end();
}

// Simulating takes as long as there are steps: of one rank where all are alike, else of all ranks.
// The schedule of a rank in the middle tells how many.
bool CostBook::is_feasible(const Algorithm& algorithm, const Question& question) {
  if (question.ranks <= kFew) return true;
  // Pipelines of very many ranks keep each other waiting, and simulating them takes ages.
  if (question.ranks > kMostBruck && (is_bruck(algorithm) || algorithm.traits.pipelines))
    return false;
  const auto segments = segments_for(algorithm, static_cast<std::uint64_t>(question.bytes), 0);
  const Place place{
      .rank = question.ranks / 2, .size = question.ranks, .segments = segments, .node_of = {}};
  const auto steps = static_cast<double>(algorithm.make(place).steps.size());
  if (steps * question.ranks <= kMostSteps) return true;
  return steps <= kMostSteps &&
         workload_of(algorithm, place, question.bytes).symmetry != Symmetry::none;
}

Costed CostBook::costed(const Moment& end, double bytes_per_rank, double messages,
                        std::string algorithm) const {
  const auto time = static_cast<double>(end.at);
  return {end,      time * network_.error.low, time * network_.error.high, bytes_per_rank,
          messages, std::move(algorithm)};
}

std::vector<CostBook::Entrant> CostBook::entrants(const Question& question) const {
  std::vector<Entrant> rows;
  const bool any_wanted =
      std::any_of(algorithms().begin(), algorithms().end(), [&](const Algorithm& row) {
        return row.collective == question.collective && is_wanted(row);
      });
  for (const auto& algorithm : algorithms()) {
    if (algorithm.collective != question.collective || (any_wanted && !is_wanted(algorithm)) ||
        !fits(algorithm, question, network_))
      continue;
    rows.push_back({&algorithm, question.ranks <= kFew
                                    ? 0
                                    : beginnings_ps(algorithm, question.ranks, network_)});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Entrant& a, const Entrant& b) { return a.least_ps < b.least_ps; });
  return rows;
}

void CostBook::leave_out(const Algorithm& algorithm) {
  const auto name = fmt::format("{} {}", sinew::name(algorithm.collective), algorithm.name);
  if (std::find(left_out_.begin(), left_out_.end(), name) == left_out_.end())
    left_out_.push_back(name);
}

Costed CostBook::find(Collective collective, int ranks, double bytes, bool private_sizes) {
  if (ranks < 2) return {};
  const Question question{.collective = collective, .ranks = ranks, .bytes = bytes};
  Costed best;
  best.end.at = std::numeric_limits<Picoseconds>::max();
  for (const auto& [algorithm, least_ps] : entrants(question)) {
    if (least_ps >= static_cast<double>(best.end.at)) continue;  // cannot win
    if (private_sizes && !algorithm->traits.ragged) continue;
    if (!is_feasible(*algorithm, question)) {
      if (!is_bruck(*algorithm)) {
        leave_out(*algorithm);
        continue;
      }
      const double rounds = std::bit_width(static_cast<unsigned>(ranks - 1));
      const bool scatters = collective == Collective::alltoall;
      const auto end = bruck(collective, ranks, bytes, network_);
      if (end.at < best.end.at)
        best = costed(end, scatters ? bytes * rounds / 2 : bytes * (ranks - 1) / ranks,
                      rounds * ranks, "bruck");
      continue;
    }
    const auto answer = predict(*algorithm, question, network_);
    if (answer.time >= best.end.at) continue;
    const auto part = [&](double share) {
      return static_cast<Picoseconds>(std::llround(share * static_cast<double>(answer.time)));
    };
    best = costed({answer.time, part(answer.alpha), part(answer.beta), part(answer.gamma)},
                  answer.bytes_per_rank, static_cast<double>(answer.messages),
                  std::string(algorithm->name));
  }
  if (best.end.at == std::numeric_limits<Picoseconds>::max())
    throw Error(Errc::invalid_argument, fmt::format("no algorithm for {} fits {} workers here",
                                                    sinew::name(collective), ranks));
  return best;
}

Costed CostBook::find_ragged(Collective collective, int ranks, double bytes, double imbalance) {
  if (ranks < 2) return {};
  const bool scatters = collective == Collective::alltoall;
  const std::string name = scatters ? "pairwise" : "bruck";
  const auto parts = skewed_parts(ranks, bytes, imbalance);
  if (ranks <= kMostRagged) {
    const auto outcome =
        simulate(scatters ? ragged_alltoall(parts) : ragged_allgather(parts), network_);
    return costed(outcome.end, outcome.busiest_bytes, static_cast<double>(outcome.messages), name);
  }
  // What the rank with the largest part takes in, message by message.
  const auto& curve = network_.exchange.is_free() ? network_.one_way : network_.exchange;
  const double others = ranks - 1.0;
  const double rounds = std::bit_width(static_cast<unsigned>(ranks - 1));
  const auto one = curve.at(scatters ? parts.front() : bytes - parts.back());
  const auto times = static_cast<Picoseconds>(scatters ? others : 1);
  Moment end;
  end.alpha = one.alpha * static_cast<Picoseconds>(scatters ? others : rounds);
  end.beta = one.beta * times;
  end.at = end.alpha + end.beta;
  return costed(end, scatters ? bytes : bytes - parts.back(), (scatters ? others : rounds) * ranks,
                name);
}

}  // namespace sinew
