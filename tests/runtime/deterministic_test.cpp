// `deterministic`: the bits are those of a left fold over the ranks, whatever the algorithm, the
// size, or the way buffers are put together.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/local_ranks.hpp"

namespace sinew {
namespace {

// Values of very different magnitudes, so that every other order of adding gives other bits.
float rough(int rank, std::size_t element) {
  auto bits = (element * 64 + static_cast<std::size_t>(rank) + 1) * 0x9E3779B97F4A7C15U;
  bits = (bits ^ bits >> 31) * 0xD6E8FEB86659FD93U;
  const auto mantissa = static_cast<float>(bits >> 40 & 0xFFFF) / 65521.0F - 0.5F;
  return std::ldexp(mantissa, static_cast<int>(bits >> 58) % 24);
}

template <class T>
T from_float(float value) {
  if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(value);
  else
    return value;
}
float plus(float a, float b) { return a + b; }
bf16 plus(bf16 a, bf16 b) { return to_bf16(to_float(a) + to_float(b)); }

template <class T>
std::vector<T> contribution(int rank, std::size_t first, std::size_t count) {
  std::vector<T> data;
  for (std::size_t i = 0; i < count; ++i) data.push_back(from_float<T>(rough(rank, first + i)));
  return data;
}

template <class T>
std::vector<T> left_fold(int size, std::size_t first, std::size_t count) {
  auto sum = contribution<T>(0, first, count);
  for (int rank = 1; rank < size; ++rank) {
    const auto next = contribution<T>(rank, first, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] = plus(sum[i], next[i]);
  }
  return sum;
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

test::LocalSetup deterministic() {
  test::LocalSetup setup;
  setup.options.deterministic = true;
  return setup;
}

template <class T>
void expect_left_folds(int size) {
  test::Complaints wrong(size);
  const auto check = [&](Communicator& c, std::string_view algorithm, std::size_t count) {
    auto data = contribution<T>(c.rank(), 0, count);
    c.allreduce(std::span(data), ReduceOp::sum, {.algorithm = algorithm});
    if (!same_bits<T>(data, left_fold<T>(size, 0, count)))
      wrong.add(c.rank(), fmt::format("allreduce '{}' of {}", algorithm, count));
    const auto mine = contribution<T>(c.rank(), 0, count * static_cast<std::size_t>(size));
    std::vector<T> part(count);
    if (algorithm.empty() || algorithm == "linear" || algorithm == "direct") {
      c.reduce_scatter(std::span<const T>(mine), std::span(part), ReduceOp::sum,
                       {.algorithm = algorithm});
      if (!same_bits<T>(part,
                        left_fold<T>(size, count * static_cast<std::size_t>(c.rank()), count)))
        wrong.add(c.rank(), fmt::format("reduce_scatter '{}' of {}", algorithm, count));
    }
  };
  test::on_local(
      size,
      [&](Communicator& c) {
        for (const std::size_t count : {1UL, 3UL, 7UL, 100UL, 1000UL, 20011UL}) {
          check(c, "", count);
          for (const auto& algorithm : algorithms())
            if (algorithm.collective == Collective::allreduce && algorithm.traits.rank_order &&
                algorithm.fits({c.rank(), size, 0, 1, {}}, {true, false}))
              check(c, algorithm.name, count);
        }
      },
      deterministic());
  EXPECT_EQ(wrong.text(), "");
}

TEST(Deterministic, f32_sums_are_left_folds_at_every_size_and_by_every_algorithm_that_fits) {
  for (const int size : {2, 3, 5, 8}) expect_left_folds<float>(size);
}

TEST(Deterministic, bf16_sums_round_after_every_rank) {
  for (const int size : {3, 4}) expect_left_folds<bf16>(size);
}

TEST(Deterministic, the_data_would_show_another_order) {
  const auto in_order = left_fold<float>(3, 0, 1000);
  std::size_t differs = 0;
  for (std::size_t i = 0; i < 1000; ++i)
    differs += rough(0, i) + (rough(1, i) + rough(2, i)) != in_order[i] ? 1 : 0;
  EXPECT_GT(differs, 100U);
}

TEST(Deterministic, bits_do_not_depend_on_how_buffers_are_fused) {
  test::on_local(
      3,
      [](Communicator& c) {
        for (const std::size_t count : {5UL, 600UL, 40000UL}) {
          auto fused = contribution<float>(c.rank(), 0, 2 * count);
          auto first = contribution<float>(c.rank(), 0, count),
               second = contribution<float>(c.rank(), count, count);
          c.allreduce(std::span(fused));
          c.allreduce(std::span(first));
          c.allreduce(std::span(second));
          first.insert(first.end(), second.begin(), second.end());
          ASSERT_TRUE(same_bits<float>(fused, first)) << count;
        }
      },
      deterministic());
}

TEST(Deterministic, algorithms_of_another_order_are_refused_by_name) {
  test::on_local(
      4,
      [](Communicator& c) {
        std::vector<float> data(100);
        for (const auto& algorithm : algorithms()) {
          if (algorithm.collective != Collective::allreduce || algorithm.traits.rank_order ||
              !algorithm.fits({.size = 4, .node_of = {}}, {.board = true}))
            continue;
          try {
            c.allreduce(std::span(data), ReduceOp::sum, {.algorithm = algorithm.name});
            ADD_FAILURE() << algorithm.name;
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::unsupported);
            EXPECT_NE(std::string(error.what())
                          .find(fmt::format("{} does not combine in rank order", algorithm.name)),
                      std::string::npos)
                << error.what();
          }
        }
        c.barrier();  // nothing was lost
      },
      deterministic());
}

TEST(Deterministic, the_choice_is_always_of_rank_order) {
  for (const int size : {2, 3, 8})
    test::on_local(
        size,
        [](Communicator& c) {
          for (const auto collective :
               {Collective::allreduce, Collective::reduce, Collective::reduce_scatter})
            for (std::size_t count = 1; count < (1U << 24); count *= 8) {
              const auto best = c.explain({.collective = collective, .count = count}).front();
              ASSERT_TRUE(best.refused.empty());
              ASSERT_TRUE(find_algorithm(collective, best.algorithm).traits.rank_order)
                  << best.algorithm;
            }
        },
        deterministic());
}

TEST(Deterministic, an_installed_schedule_of_another_order_is_refused_too) {
  test::on_local(
      3,
      [](Communicator& c) {
        auto world = make_world(find_algorithm(Collective::allreduce, "ring"), 3);
        for (auto& schedule : world.ranks) schedule.name = "mine";
        c.install(world);
        std::vector<float> data(100);
        try {
          c.allreduce(std::span(data), ReduceOp::sum, {.algorithm = "mine"});
          ADD_FAILURE();
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Errc::unsupported);
          EXPECT_NE(std::string(error.what()).find("mine does not combine in rank order"),
                    std::string::npos);
        }
      },
      deterministic());
}

}  // namespace
}  // namespace sinew
