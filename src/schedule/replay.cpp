#include "schedule/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include <sinew/error.hpp>
#include <sinew/verify.hpp>
#include "schedule/simulation.hpp"

namespace sinew {
namespace {

constexpr Conditions kEvery[] = {{Sends::synchronous}, {Sends::buffered}};

std::vector<Leaf> leaves_of(const Terms& terms, TermId value) {
  std::vector<Leaf> leaves;
  for (const auto& [leaf, count] : terms.leaves(value)) {
    const auto [rank, chunk] = terms.origin(leaf);
    leaves.insert(leaves.end(), count, {rank, chunk});
  }
  return leaves;
}

// Buffers lie one behind the other where output does not overlay input.
std::pair<Buf, std::uint32_t> place_of(const Schedule& schedule, detail::Cell cell) {
  for (const auto buf : {Buf::input, Buf::output, Buf::scratch}) {
    const auto chunks = schedule.chunks[static_cast<std::size_t>(buf)];
    if (cell < chunks) return {buf, cell};
    cell -= chunks;
  }
  return {Buf::board, cell};
}

std::string text_of(const Fault& fault) {
  return fault.rank < 0 ? fault.why
                        : fmt::format("rank {}, round {}: {}", fault.rank, fault.round, fault.why);
}

std::optional<Fault> first_fault(const World& world) {
  for (const auto& conditions : kEvery)
    if (auto verdict = verify(world, conditions); !verdict.ok()) return verdict.fault;
  return std::nullopt;
}

Edit judged(const World& world, int rank, std::size_t step, std::string what) {
  const auto fault = first_fault(world);
  return {rank, step, std::move(what),
          fault ? text_of(*fault) : "still right: every rank has what it should have",
          fault.has_value()};
}

}  // namespace

std::vector<Change> replay(const World& world) {
  if (const auto fault = first_fault(world))
    throw Error(Errc::invalid_argument,
                fmt::format("this schedule does not verify: {}", text_of(*fault)));
  detail::Simulation simulation(world, {});
  std::vector<Change> changes;
  simulation.watch([&](int rank, detail::Cell cell, const Step& step, TermId value) {
    const auto [buf, chunk] = place_of(world.ranks[static_cast<std::size_t>(rank)], cell);
    changes.push_back({rank, step.round, buf, chunk, leaves_of(simulation.terms(), value)});
  });
  simulation.run();
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.round, a.rank) < std::tie(b.round, b.rank);
  });
  return changes;
}

std::vector<Edit> try_edits(const World& world) {
  std::vector<Edit> edits;
  for (const auto& schedule : world.ranks)
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      const auto rank = static_cast<std::size_t>(schedule.rank);
      auto without = world;
      auto& steps = without.ranks[rank].steps;
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
      edits.push_back(judged(without, schedule.rank, i, "without it"));
      const auto op = schedule.steps[i].op;
      if (op != Op::recv_reduce && op != Op::reduce) continue;
      auto overwriting = world;
      overwriting.ranks[rank].steps[i].op = op == Op::reduce ? Op::copy : Op::recv;
      edits.push_back(judged(overwriting, schedule.rank, i, "overwriting instead of adding"));
    }
  return edits;
}

}  // namespace sinew
