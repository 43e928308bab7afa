// `sinew demo collectives`: every collective on small numbers; `sinew demo tour`: the same, then a
// schedule drawn, proven and run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include <sinew/communicator.hpp>
#include "cli/arguments.hpp"
#include "cli/demo_parts.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "model/traffic.hpp"

namespace sinew {
namespace {

using Numbers = std::vector<std::int32_t>;

/// One collective on small numbers: what each rank has before and after.
struct Scene {
  Collective collective{};
  std::string story;
  std::vector<Numbers> before, after;
};

std::string_view story_of(Collective collective) {
  switch (collective) {
    case Collective::allreduce:
      return "every rank ends with the sum of all";
    case Collective::reduce:
      return "rank 0 ends with the sum of all";
    case Collective::broadcast:
      return "every rank ends with rank 0's numbers";
    case Collective::allgather:
      return "every rank ends with everyone's numbers";
    case Collective::reduce_scatter:
      return "each rank ends with its part of the sum";
    case Collective::alltoall:
      return "each rank sends one part to each: a transpose";
    case Collective::scatter:
      return "rank 0 deals its numbers out";
    case Collective::gather:
      return "rank 0 collects everyone's numbers";
    case Collective::barrier:
      return "nobody goes on before everyone has come";
  }
  return "";
}

// How many numbers a rank gives and gets when a part is one number.
std::pair<std::size_t, std::size_t> extent(Collective collective, int rank, std::size_t size) {
  const bool root = rank == 0;
  switch (collective) {
    case Collective::allreduce:
      return {2, 2};
    case Collective::reduce:
      return {2, root ? 2 : 0};
    case Collective::broadcast:
      return {root ? 2 : 0, 2};
    case Collective::allgather:
      return {1, size};
    case Collective::reduce_scatter:
      return {size, 1};
    case Collective::alltoall:
      return {size, size};
    case Collective::scatter:
      return {root ? size : 0, 1};
    case Collective::gather:
      return {1, root ? size : 0};
    case Collective::barrier:
      return {0, 0};
  }
  return {};
}

Scene play(Collective collective, int ranks) {
  const auto size = static_cast<std::size_t>(ranks);
  Scene scene{collective, std::string(story_of(collective)), std::vector<Numbers>(size),
              std::vector<Numbers>(size)};
  run_local(ranks, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    const auto [gives, gets] = extent(collective, rank, size);
    Numbers in(gives), out(gets);
    std::iota(in.begin(), in.end(), 10 * (rank + 1));
    const bool whole = collective == Collective::allreduce || collective == Collective::reduce ||
                       collective == Collective::broadcast;
    communicator.run({.collective = collective,
                      .dtype = DType::i32,
                      .input = in.data(),
                      .output = out.data(),
                      .count = whole ? std::size_t{2} : std::size_t{1}});
    scene.before[static_cast<std::size_t>(rank)] = in;
    scene.after[static_cast<std::size_t>(rank)] = out;
  });
  return scene;
}

// Numbers in the larger buffer of a rank.
std::size_t message_numbers(Collective collective, int ranks) {
  const auto [gives, gets] = extent(collective, 0, static_cast<std::size_t>(ranks));
  return std::max(gives, gets);
}

// Of many numbers, the first and the last.
std::string cells(const Numbers& numbers) {
  if (numbers.size() > 8)
    return fmt::format("{} ... {}", fmt::join(numbers.begin(), numbers.begin() + 5, " "),
                       numbers.back());
  return numbers.empty() ? "-" : fmt::format("{}", fmt::join(numbers, " "));
}

void show_collectives(int ranks) {
  for (const auto collective : kCollectives) {
    const auto scene = play(collective, ranks);
    fmt::print("{}: {}\n", name(collective), scene.story);
    if (collective != Collective::barrier) {
      Table table({{"rank", Align::right},
                   {"before", Align::left},
                   {"", Align::left},
                   {"after", Align::left}});
      for (int rank = 0; rank < ranks; ++rank)
        table.add({fmt::format("{}", rank), cells(scene.before[static_cast<std::size_t>(rank)]),
                   "->", cells(scene.after[static_cast<std::size_t>(rank)])});
      fmt::print("{}", table.text());
    }
    for (const auto* algorithm : algorithms_of(collective)) {
      if (!algorithm->fits({0, ranks, 0, 1, {}}, kOneHost)) continue;
      const auto world = make_world(*algorithm, ranks);
      std::size_t steps = 0;
      for (const auto& schedule : world.ranks) steps = std::max(steps, schedule.steps.size());
      const auto all = traffic(world);
      const auto most = busiest(all.ranks);
      const auto bytes = [&](std::uint64_t chunks) {  // of a message as large as the one above
        const auto numbers = message_numbers(collective, ranks);
        return all.message == 0
                   ? 0.0
                   : static_cast<double>(chunks * numbers * sizeof(std::int32_t)) / all.message;
      };
      fmt::print("  {:<20} {:>2} rounds, {:>2} steps, {:>3.0f} B sent, {:>3.0f} B shared\n",
                 algorithm->name, all.rounds, steps, bytes(most.sent), bytes(most.written));
    }
    fmt::print("\n");
  }
}

int call(int (*verb)(int, char**), std::vector<std::string> words) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  fmt::print("$ sinew {}\n", fmt::join(words, " "));
  std::fflush(stdout);
  const int status = verb(static_cast<int>(argv.size()), argv.data());
  fmt::print("\n");
  return status;
}

}  // namespace

int demo_collectives(int ranks) {
  show_collectives(ranks);
  return kFine;
}

int demo_tour(int ranks) {
  fmt::print("1. Every collective, on small numbers ({} ranks as threads)\n\n", ranks);
  show_collectives(ranks);
  fmt::print("2. A collective is data: drawn,\n\n");
  int worst = call(run_draw, {"draw", "allreduce", "--algo", "ring", "-p", "4"});
  fmt::print("3. ... proven for many rank counts, without moving a byte,\n\n");
  worst = std::max(worst, call(run_verify, {"verify", "allreduce", "-p", "1..9,16"}));
  fmt::print("4. ... and run, beside the MPIs installed here\n\n");
  worst = std::max(worst, call(run_bench, {"bench", "allreduce", "-p", "2,4", "-f", "64",
                                           "--budget", "0.1", "--against", "openmpi,mpich"}));
  fmt::print(
      "What you saw: nine collectives and their results; one of them as a drawing;\n"
      "proofs that its algorithms are right; and their times (ratio = best peer's\n"
      "time / ours, so above 1 is faster).\n"
      "Next: sinew list --cost -p 8, sinew bench all --style csv, README.md.\n");
  return worst;
}

}  // namespace sinew
