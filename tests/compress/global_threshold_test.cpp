// The k-th magnitude over all ranks against sorting, whichever way it is found.
#include "compress/global_threshold.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <tuple>
#include <vector>

#include <sinew/error.hpp>
#include "support/gradients.hpp"

namespace sinew {
namespace {

/// A step that is about nothing but the threshold.
struct Step {
  explicit Step(Communicator& communicator)
      : x(communicator, {}, feedback, report, ReduceOp::sum, true) {}
  ErrorFeedback feedback{{{"all", {1}}}};
  StepReport report;
  Exchange x;
};

using Make = std::function<std::vector<float>(int rank, int step)>;

/// Whether each of a rank's values is among the k largest of all: ties by rank, then by index.
std::vector<bool> kept_by_sorting(const Make& make, int ranks, int rank, int step, std::size_t k) {
  struct Item {
    Magnitude size;
    int rank;
    std::size_t index;
  };
  std::vector<Item> items;
  for (int r = 0; r < ranks; ++r) {
    const auto values = make(r, step);
    for (std::size_t i = 0; i < values.size(); ++i) items.push_back({magnitude(values[i]), r, i});
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.size > b.size; });
  items.resize(std::min(items.size(), k));
  std::vector<bool> kept(make(rank, step).size());
  for (const auto& item : items)
    if (item.rank == rank) kept[item.index] = true;
  return kept;
}

std::string compare(int ranks, std::size_t k, int steps, const Make& make) {
  return test::on_ranks(ranks, [&](Communicator& communicator) -> std::string {
    GlobalThreshold threshold;
    for (int step = 0; step < steps; ++step) {
      Step one(communicator);
      const auto values = make(communicator.rank(), step);
      auto [least, ties] = threshold.find(one.x, values, k);
      const auto expected = kept_by_sorting(make, ranks, communicator.rank(), step, k);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool is_tied = magnitude(values[i]) == least;
        const bool stays = magnitude(values[i]) > least || (is_tied && ties > 0);
        if (is_tied && ties > 0) --ties;
        if (stays != expected[i])
          return fmt::format("step {}, value {} of rank {}: {}", step, i, communicator.rank(),
                             stays ? "stays" : "goes");
      }
    }
    return {};
  });
}

// Some for each rank, and not as many.
std::size_t count_for(int rank, std::size_t about) {
  return about + static_cast<std::size_t>(rank) * 37;
}

std::vector<float> random_values(int rank, int step, std::size_t count, float least, float most) {
  std::mt19937 random(static_cast<unsigned>(rank * 100 + step));
  std::uniform_real_distribution<float> uniform(least, most);
  std::vector<float> values(count);
  for (auto& value : values) value = random() % 2 == 0 ? uniform(random) : -uniform(random);
  return values;
}

TEST(GlobalThreshold, is_that_of_sorting_for_any_values) {
  struct Case {
    const char* name;
    std::size_t count, k;
    float least, most;
  };
  for (const auto& [name, count, k, least, most] :
       std::vector<Case>{{"a few", 100, 30, 0, 1},
                         {"many", 9000, 4000, 0, 1},
                         {"many in one bin of the first digit", 9000, 5000, 1, 1.1F},
                         {"many in one fine bin", 9000, 5000, 1, 1.002F},
                         {"many in a bin of the second digit", 9000, 5000, 1, 1.00005F},
                         {"all equal", 9000, 10000, 2, 2},
                         {"fewer than wanted", 50, 1000, 0, 1},
                         {"denormal", 9000, 5000, 0, 1e-40F}})
    for (const int ranks : {1, 3})
      EXPECT_EQ(compare(ranks, k, 4,
                        [&, n = count, low = least, high = most](int rank, int step) {
                          return low == high
                                     ? std::vector<float>(count_for(rank, n), low)
                                     : random_values(rank, step, count_for(rank, n), low, high);
                        }),
                "")
          << name << ", " << ranks << " ranks";
}

TEST(GlobalThreshold, is_found_wherever_it_jumps) {
  const float scales[] = {1, 1.001F, 30, 1e-30F, 1e30F, 1e30F, 0, 1};
  EXPECT_EQ(compare(2, 300, 8,
                    [&](int rank, int step) {
                      auto values = random_values(rank, step, 500, 0.5F, 1);
                      for (auto& value : values) value *= scales[step];
                      return values;
                    }),
            "");
}

TEST(GlobalThreshold, does_not_believe_how_many_values_a_rank_has) {
  for (const std::int32_t announced : {1 << 30, -1})
    EXPECT_EQ(test::on_ranks(2,
                             [&](Communicator& communicator) -> std::string {
                               Step one(communicator);
                               if (communicator.rank() == 1) {
                                 std::vector<std::int32_t> counts(2049);
                                 // 100 values of rank 0 share a bin: room for as many.
                                 std::vector<std::int32_t> words(101), all(202);
                                 words[0] = announced;
                                 one.x.allreduce("thresholds", std::span(counts));
                                 one.x.allgather("thresholds", std::span<const std::int32_t>(words),
                                                 std::span(all));
                                 return {};
                               }
                               GlobalThreshold threshold;
                               const auto values = random_values(0, 0, 100, 1, 1.05F);
                               try {
                                 threshold.find(one.x, values, 50);
                               } catch (const Error& error) {
                                 return error.context().peer == 1 ? "" : error.what();
                               }
                               return "nothing was said";
                             }),
              "");
}

}  // namespace
}  // namespace sinew
