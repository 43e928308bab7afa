// Ok-Topk against an oracle in one process, on the data its reference gets wrong, and over faults.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "compress/items.hpp"
#include "compress/regions.hpp"
#include "support/fork_ranks.hpp"
#include "support/gradients.hpp"
#include "support/local_ranks.hpp"
#include "support/oktopk_oracle.hpp"

namespace sinew {
namespace {

using test::Oracle;
using test::Stepped;
using test::Vectors;
constexpr int kSizes[] = {1, 2, 3, 4, 5, 7, 8};

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

using Maker = std::function<std::vector<float>(int rank, int step)>;

struct Trial {
  int size = 2;
  std::size_t elements = 1000;
  std::uint64_t k = 20;
  int steps = 3;
  bool tcp = false;
  std::map<std::string, double> parameters{};
};

// Runs the scheme and the oracle side by side and compares every bit of result and residual.
std::string compare_with_oracle(const Trial& trial, const Maker& make) {
  Oracle oracle;
  std::vector<Vectors> gradients;
  Vectors results;
  std::vector<Vectors> residuals;
  for (int step = 0; step < trial.steps; ++step) {
    auto& all = gradients.emplace_back();
    for (int rank = 0; rank < trial.size; ++rank) all.push_back(make(rank, step));
    results.push_back(oracle.step(all, trial.k));
    residuals.push_back(oracle.kept);
  }
  return test::on_ranks(
      trial.size,
      [&](Communicator& communicator) -> std::string {
        const auto rank = static_cast<std::size_t>(communicator.rank());
        Compressor compressor(communicator, find_scheme("oktopk"), trial.elements,
                              {.target_items = trial.k, .parameters = trial.parameters});
        for (std::size_t step = 0; step < results.size(); ++step) {
          const auto got = test::take_step(compressor, gradients[step][rank]);
          for (std::size_t i = 0; i < trial.elements; ++i)
            if (bits(got.result[i]) != bits(results[step][i]) ||
                bits(got.kept[i]) != bits(residuals[step][rank][i]))
              return fmt::format(
                  "{} ranks, step {}, element {}: got {} and keeps {}, want {} and {}", trial.size,
                  step, i, got.result[i], got.kept[i], results[step][i], residuals[step][rank][i]);
        }
        return {};
      },
      trial.tcp);
}

TEST(OkTopk, has_the_bits_of_the_oracle) {
  for (const int size : kSizes)
    for (const std::size_t elements : {std::size_t{16}, std::size_t{1000}, std::size_t{30011}}) {
      const auto k = std::max<std::uint64_t>(1, elements / 50);
      EXPECT_EQ(compare_with_oracle({size, elements, k, 5},
                                    [&](int rank, int step) {
                                      return test::gradient(elements, rank,
                                                            static_cast<std::uint64_t>(step));
                                    }),
                "");
    }
}

TEST(OkTopk, has_the_same_bits_over_sockets) {
  for (const int size : {2, 5, 8})
    EXPECT_EQ(compare_with_oracle({size, 5000, 100, 3, true},
                                  [&](int rank, int step) {
                                    return test::gradient(5000, rank,
                                                          static_cast<std::uint64_t>(step));
                                  }),
              "");
}

TEST(OkTopk, has_the_same_bits_between_processes) {
  Oracle oracle;
  const int size = 4;
  std::vector<std::vector<float>> expected;
  for (int step = 0; step < 3; ++step) {
    Vectors all;
    for (int rank = 0; rank < size; ++rank)
      all.push_back(test::gradient(5000, rank, static_cast<std::uint64_t>(step)));
    expected.push_back(oracle.step(all, 100));
  }
  for (const auto medium : test::kMedia) {
    const auto told = test::fork_ranks(
        size,
        [&](const test::Seat& seat) {
          auto communicator = seat.join();
          Compressor compressor(communicator, find_scheme("oktopk"), 5000, {.target_items = 100});
          for (std::size_t step = 0; step < expected.size(); ++step) {
            auto gradient = test::gradient(5000, seat.rank, step);
            compressor.allreduce(gradient);
            if (gradient != expected[step]) seat.tell(fmt::format("step {} differs", step));
          }
        },
        medium);
    EXPECT_TRUE(told.empty()) << told.front();
  }
}

// Every block is evened out, and every step cuts regions anew: the same bits.
TEST(OkTopk, balancing_and_repartition_change_no_bit) {
  for (const int size : kSizes)
    for (const double period : {1.0, 2.0})
      EXPECT_EQ(compare_with_oracle(
                    {size, 20011, 400, 4, false, {{"balance_over", 1}, {"repartition", period}}},
                    [&](int rank, int step) {
                      auto values = test::gradient(20011, rank, static_cast<std::uint64_t>(step));
                      for (std::size_t i = 0; i < 2000; ++i) values[i] *= 30;  // a skewed result
                      return values;
                    }),
                "");
}

// B5: nothing selected anywhere, or on one rank.
TEST(OkTopk, B5_zeros_and_an_empty_rank_work) {
  for (const int size : kSizes) {
    EXPECT_EQ(
        compare_with_oracle({size, 1000, 20}, [](int, int) { return std::vector<float>(1000); }),
        "");
    EXPECT_EQ(compare_with_oracle(
                  {size, 1000, 20},
                  [](int rank, int step) {
                    return rank == 0 ? std::vector<float>(1000)
                                     : test::gradient(1000, rank, static_cast<std::uint64_t>(step));
                  }),
              "");
  }
}

// B4 and B5: ties. Exactly k items, the lowest indices, and none is lost.
TEST(OkTopk, B4_ties_at_the_kth_value_are_sent_and_counted) {
  for (const int size : kSizes) {
    EXPECT_EQ(compare_with_oracle({size, 1000, 20, 60},
                                  [](int, int) { return std::vector<float>(1000, 0.25F); }),
              "");
    EXPECT_EQ(compare_with_oracle({size, 3000, 60, 5},
                                  [](int rank, int step) {
                                    std::vector<float> values(3000);
                                    for (std::size_t i = 0; i < values.size(); ++i)
                                      values[i] =
                                          (i * 7 + static_cast<std::size_t>(rank + step)) % 3 == 0
                                              ? -2.0F
                                              : 2.0F;
                                    return values;
                                  }),
              "");
  }
}

TEST(OkTopk, all_mass_in_a_corner_and_dominant_ranks_work) {
  for (const int size : kSizes) {
    EXPECT_EQ(compare_with_oracle({size, 100000, 100, 3},
                                  [](int rank, int step) {
                                    std::vector<float> values(100000);
                                    const auto some =
                                        test::gradient(100, rank, static_cast<std::uint64_t>(step));
                                    std::copy(some.begin(), some.end(), values.begin());
                                    return values;
                                  }),
              "");
    EXPECT_EQ(compare_with_oracle({size, 5000, 100, 3},
                                  [](int rank, int step) {
                                    return test::gradient(5000, rank,
                                                          static_cast<std::uint64_t>(step),
                                                          rank == 0 ? 1e6F : 1e-6F);
                                  }),
              "");
    EXPECT_EQ(compare_with_oracle({size, 5000, 100, 3},
                                  [](int rank, int step) {  // counts that differ by 1000
                                    std::vector<float> values(5000);
                                    for (std::size_t i = 0; i < (rank == 0 ? 5000U : 5U); ++i)
                                      values[i * (rank == 0 ? 1 : 997)] = static_cast<float>(
                                          i + 1 + static_cast<std::size_t>(step));
                                    return values;
                                  }),
              "");
  }
}

// Two ranks that cancel to exactly zero: if selected, both residuals are cleared and it counts.
TEST(OkTopk, sums_of_exactly_zero_are_items) {
  const auto told = test::on_ranks(2, [](Communicator& communicator) -> std::string {
    Compressor compressor(communicator, find_scheme("oktopk"), 100, {.target_items = 3});
    std::vector<float> gradient(100);
    gradient[7] = communicator.rank() == 0 ? 5.0F : -5.0F;
    gradient[9] = 1;
    const auto& report = compressor.allreduce(gradient);
    if (report.items != 2) return fmt::format("{} items", report.items);
    const auto kept = compressor.feedback().kept();
    if (std::any_of(kept.begin(), kept.end(), [](float value) { return value != 0; }))
      return "a residual is left";
    return gradient[7] == 0 && gradient[9] == 1 ? "" : "the result is wrong";
  });
  EXPECT_EQ(told, "");
}

TEST(OkTopk, tiny_and_huge_values_work) {
  EXPECT_EQ(compare_with_oracle({3, 4000, 80, 4},
                                [](int rank, int step) {
                                  auto values =
                                      test::gradient(4000, rank, static_cast<std::uint64_t>(step));
                                  for (std::size_t i = 0; i < values.size(); ++i) {
                                    if (i % 5 == 0) values[i] *= 1e-38F;
                                    if (i % 7 == 0) values[i] *= 1e36F;
                                    if (i % 11 == 0) values[i] = -0.0F;
                                    if (i % 13 == 0)
                                      values[i] = std::numeric_limits<float>::denorm_min();
                                  }
                                  return values;
                                }),
            "");
}

// 6. k beyond the nonzeros sends them all; density 1 is the dense allreduce, bit for bit.
TEST(OkTopk, density_one_is_dense) {
  for (const int size : {1, 3, 4}) {
    const auto told = test::on_ranks(size, [](Communicator& communicator) -> std::string {
      Compressor sparse(communicator, find_scheme("oktopk"), 3000, {.density = 1});
      Compressor dense(communicator, find_scheme("dense"), 3000);
      for (std::uint64_t step = 0; step < 3; ++step) {
        auto a = test::gradient(3000, communicator.rank(), step), b = a;
        sparse.allreduce(a);
        dense.allreduce(b);
        if (a != b) return "differs from dense";
      }
      return "";
    });
    EXPECT_EQ(told, "");
  }
  EXPECT_EQ(compare_with_oracle({3, 1000, 999, 3},
                                [](int rank, int step) {
                                  std::vector<float> values(1000);
                                  for (std::size_t i = 0; i < 1000; i += 10)
                                    values[i] = static_cast<float>(i + 1) *
                                                static_cast<float>(rank + 1 + step);
                                  return values;
                                }),
            "");
}

// B8: density holds in every step, whatever the scale does.
TEST(OkTopk, B8_density_holds_through_jumps_of_scale) {
  for (const float jump : {100.0F, 0.01F}) {
    const auto told = test::on_ranks(4, [&](Communicator& communicator) -> std::string {
      Compressor compressor(communicator, find_scheme("oktopk"), 50000, {.density = 0.02});
      for (std::uint64_t step = 0; step < 20; ++step) {
        auto gradient = test::gradient(50000, communicator.rank(), step, step >= 10 ? jump : 1.0F);
        const auto& report = compressor.allreduce(gradient);
        if (report.items != 1000 || report.local_items != 1000)
          return fmt::format("step {}: {} items, {} local", step, report.items, report.local_items);
      }
      return "";
    });
    EXPECT_EQ(told, "") << jump;
  }
}

// Rank 1 plays its part by hand, and tells what is not so of what it owns.
class Liar {
  using Words = std::vector<std::uint64_t>;

 public:
  explicit Liar(Communicator& communicator)
      : feedback_({{"all", {kElements}}}),
        x_(communicator, gradient_, feedback_, report_, ReduceOp::sum, true) {}

  void announce(std::uint64_t items, std::uint64_t more_bytes = 0) {
    const Words quantiles(kQuantiles + 1);
    Words all(2 * quantiles.size());
    x_.allgather("regions", std::span(quantiles), std::span(all));
    region_begin_ = static_cast<std::uint32_t>(balanced_regions(all, 2, kElements)[1]);
    const auto nothing = message({});
    const Words lengths(2, nothing.size() << 1);
    Words theirs(2);
    x_.alltoall("counts", std::span(lengths), std::span(theirs));
    const std::size_t sent[2] = {nothing.size(), nothing.size()};
    const std::size_t got[2] = {theirs[0] >> 1, theirs[1] >> 1};
    auto twice = nothing;
    twice.insert(twice.end(), nothing.begin(), nothing.end());
    room_.resize(got[0] + got[1]);
    x_.alltoallv("split", std::span<const std::uint8_t>(twice), sent, std::span(room_), got,
                 kLikelyBytes);
    std::vector<std::int32_t> counts(2049);
    x_.allreduce("thresholds", std::span(counts));
    const Words mine{items, 0, nothing.size() + more_bytes};
    Words told(6);
    x_.allgather("counts", std::span(mine), std::span(told));
  }
  // A block of its own for itself, and none for rank 0.
  void give(const std::vector<std::uint8_t>& block) {
    const Words lengths{0, block.size()};
    Words theirs(2);
    x_.alltoall("counts", std::span(lengths), std::span(theirs));
    const std::size_t sent[2] = {0, block.size()}, got[2] = {theirs[0], theirs[1]};
    room_.resize(got[0] + got[1]);
    x_.alltoallv("balance", std::span(block), sent, std::span(room_), got, kLikelyBytes);
    const Words mine{block.size()};
    x_.allgather("counts", std::span(mine), std::span(theirs));
    const std::size_t sizes[2] = {theirs[0], theirs[1]};
    room_.resize(sizes[0] + sizes[1]);
    x_.allgatherv("gather", std::span(block), std::span(room_), sizes);
  }
  /// Items of its region, counted from where that begins.
  [[nodiscard]] std::vector<std::uint8_t> message(std::vector<std::uint32_t> items) const {
    for (auto& item : items) item += region_begin_;
    std::vector<std::uint8_t> bytes(most_item_bytes(items.size()));
    const std::vector<float> values(items.size(), 1);
    auto* const to = reinterpret_cast<std::byte*>(bytes.data());
    bytes.resize(encode_items(items, values, region_begin_, to));
    return bytes;
  }
  static constexpr std::size_t kElements = 100000, kItems = 200;
  static constexpr std::uint64_t kLikelyBytes = kItems * 5;  // as all ranks say

 private:
  std::vector<float> gradient_ = std::vector<float>(kElements);
  ErrorFeedback feedback_;
  StepReport report_;
  Exchange x_;
  std::vector<std::uint8_t> room_;
  std::uint32_t region_begin_ = 0;
};

std::string told_of(const std::function<void(Liar&)>& lie) {
  return test::on_ranks(2, [&](Communicator& communicator) -> std::string {
    Compressor compressor(communicator, find_scheme("oktopk"), Liar::kElements,
                          {.target_items = Liar::kItems, .parameters = {{"balance_over", 1.1}}});
    if (communicator.rank() == 1) {
      Liar liar(communicator);
      lie(liar);
      return "";
    }
    std::vector<float> gradient(Liar::kElements);
    // Spread, so that both regions are large. All of it is sent, since more is asked for.
    for (std::size_t at = 0; at < gradient.size(); at += 10000) gradient[at] = 1;
    try {
      compressor.allreduce(gradient);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  });
}

TEST(OkTopk, what_an_owner_says_it_has_is_not_believed) {
  // So many that their bytes, with room to grow, wrap round to four.
  const auto told = told_of([](Liar& liar) { liar.announce(3689348814741910324U); });
  EXPECT_NE(told.find("rank 1 has 3689348814741910324 items of a region of"), std::string::npos)
      << told;
}

TEST(OkTopk, nor_how_many_bytes_those_are) {
  for (const auto bytes : {std::uint64_t{1} << 20, std::uint64_t{1} << 63}) {
    const auto told = told_of([&](Liar& liar) { liar.announce(20, bytes); });
    EXPECT_NE(told.find("bytes announced, where 184 are the most there can be"), std::string::npos)
        << told;
  }
}

TEST(OkTopk, items_of_an_owner_that_do_not_ascend_are_refused) {
  const auto told = told_of([](Liar& liar) {
    liar.announce(20);
    auto block = liar.message({9000, 9001, 9002});
    const auto second = liar.message({10, 11, 12});
    block.insert(block.end(), second.begin(), second.end());
    liar.give(block);
  });
  EXPECT_NE(told.find("owners sent items that do not ascend"), std::string::npos) << told;
}

// B1: what was sent is cleared in every step, so that nothing is applied twice: over many steps the
// results and what is left make up all that came in.
TEST(OkTopk, B1_nothing_is_applied_twice) {
  constexpr std::size_t kElements = 4000;
  constexpr int kSize = 4;
  std::vector<std::vector<double>> came(kSize), left(kSize), got(kSize);
  test::on_local(kSize, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    Compressor compressor(communicator, find_scheme("oktopk"), kElements,
                          {.density = 0.02, .op = ReduceOp::sum});
    came[rank].assign(kElements, 0);
    got[rank].assign(kElements, 0);
    for (std::uint64_t step = 0; step < 100; ++step) {
      auto gradient = test::gradient(kElements, communicator.rank(), step);
      for (std::size_t i = 0; i < kElements; ++i) came[rank][i] += gradient[i];
      compressor.allreduce(gradient);
      for (std::size_t i = 0; i < kElements; ++i) got[rank][i] += gradient[i];
    }
    const auto kept = compressor.feedback().kept();
    left[rank].assign(kept.begin(), kept.end());
  });
  for (std::size_t i = 0; i < kElements; ++i) {
    double total = -got[0][i];
    for (int rank = 0; rank < kSize; ++rank)
      total += came[static_cast<std::size_t>(rank)][i] - left[static_cast<std::size_t>(rank)][i];
    EXPECT_NEAR(total, 0, 1e-3) << i;
  }
}

// B3: boundaries in 64 bits; no sum of coordinates, so that no rank count overflows.
TEST(Regions, B3_boundaries_hold_far_beyond_32_bits) {
  constexpr int kRanks = 1000;
  constexpr std::uint64_t kElements = 4'000'000'000;
  std::vector<std::uint64_t> words(kRanks * (kQuantiles + 1));
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    words[rank * (kQuantiles + 1)] = 40'000'000;
    for (std::size_t i = 0; i < kQuantiles; ++i)
      words[rank * (kQuantiles + 1) + 1 + i] = (2 * i + 1) * kElements / (2 * kQuantiles);
  }
  const auto boundaries = balanced_regions(words, kRanks, kElements);
  ASSERT_EQ(boundaries.size(), kRanks + 1U);
  EXPECT_EQ(boundaries.front(), 0U);
  EXPECT_EQ(boundaries.back(), kElements);
  EXPECT_TRUE(std::is_sorted(boundaries.begin(), boundaries.end()));
  EXPECT_NEAR(static_cast<double>(boundaries[500]), 2e9, 4e7);
  EXPECT_EQ(equal_regions(3, 10), (std::vector<std::uint64_t>{0, 4, 7, 10}));
}

TEST(Regions, items_are_spread_evenly_however_they_lie) {
  for (const int size : {2, 4, 8}) {
    std::vector<std::uint64_t> words;
    std::vector<std::vector<std::uint32_t>> lists;
    for (int rank = 0; rank < size; ++rank) {
      auto& list = lists.emplace_back();
      for (std::uint32_t i = 0; i < 10000; ++i)  // each rank elsewhere, most in a corner
        list.push_back(i % 10 == 0 ? 1'000'000U * static_cast<std::uint32_t>(rank + 1) + i : i);
      std::sort(list.begin(), list.end());
      std::vector<std::uint64_t> mine(kQuantiles + 1);
      put_quantiles(list, mine);
      words.insert(words.end(), mine.begin(), mine.end());
    }
    const auto boundaries = balanced_regions(words, size, 20'000'000);
    for (int owner = 0; owner < size; ++owner) {
      std::size_t items = 0;
      for (const auto& list : lists)
        items += static_cast<std::size_t>(
            std::lower_bound(list.begin(), list.end(),
                             boundaries[static_cast<std::size_t>(owner) + 1]) -
            std::lower_bound(list.begin(), list.end(),
                             boundaries[static_cast<std::size_t>(owner)]));
      EXPECT_NEAR(static_cast<double>(items), 10000, 400) << owner << " of " << size;
    }
  }
}

// 12. A compressor that is saved and loaded goes on as if nothing had happened.
TEST(OkTopk, continues_from_a_checkpoint_bit_for_bit) {
  const auto told = test::on_ranks(3, [](Communicator& communicator) -> std::string {
    const auto& scheme = find_scheme("oktopk");
    Compressor first(communicator, scheme, 5000, {.density = 0.02});
    const auto step = [&](Compressor& compressor, std::uint64_t number) {
      auto gradient = test::gradient(5000, communicator.rank(), number);
      compressor.allreduce(gradient);
      return gradient;
    };
    for (std::uint64_t i = 0; i < 5; ++i) step(first, i);
    State state;
    first.save(state);
    Compressor second(communicator, scheme, 5000, {.density = 0.02});
    second.load(state);
    if (second.steps() != 5) return "the step count is lost";
    for (std::uint64_t i = 5; i < 10; ++i)
      if (step(first, i) != step(second, i)) return fmt::format("step {} differs", i);
    State one, two;
    first.save(one);
    second.save(two);
    return one == two ? "" : "the states differ in the end";
  });
  EXPECT_EQ(told, "");
}

}  // namespace
}  // namespace sinew
