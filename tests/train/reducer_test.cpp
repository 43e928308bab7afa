// The reducer over ranks as threads: sums that are exact, in an order that is fixed, overlapped or
// not, compressed or not; and what happens when a rank goes.
#include "train/reducer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "support/local_ranks.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

std::vector<TensorSpec> layers(std::size_t count) {
  std::vector<TensorSpec> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back({"layer" + std::to_string(i), {300 + i}});
  return list;
}

// Whole numbers, so that every order of adding gives the same bits.
float gradient_of(int rank, std::uint64_t step, std::size_t parameter, std::size_t at) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 7 + step * 3 + parameter * 5 + at) %
                            64);
}

void write(GradientReducer& reducer, const BucketPlan& plan, int rank, std::uint64_t step,
           std::size_t parameter) {
  const auto gradient = reducer.gradient(parameter);
  ASSERT_EQ(gradient.size(), plan.parameters[parameter].elements());
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = gradient_of(rank, step, parameter, i);
}

void expect_sums(const GradientReducer& reducer, const BucketPlan& plan, int size,
                 std::uint64_t step) {
  for (std::size_t parameter = 0; parameter < plan.parameters.size(); ++parameter) {
    const auto sum = reducer.gradient(parameter);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      float expected = 0;
      for (int rank = 0; rank < size; ++rank) expected += gradient_of(rank, step, parameter, i);
      ASSERT_EQ(sum[i], expected) << parameter << ' ' << i;
    }
  }
}

/// Notes the tags of collectives in the order in which they were done.
class Tags final : public Observer {
 public:
  void on_event(const Event& event) noexcept override {
    if (event.kind == EventKind::collective) tags.push_back(event.tag);
  }
  std::vector<std::uint64_t> tags;
};

void sum_steps(Communicator& c, std::uint64_t bucket_bytes, bool overlap) {
  const auto plan = plan_buckets(layers(12), bucket_bytes);
  agree_on(plan, c);
  Tags tags;
  GradientReducer reducer(c, plan, {.overlap = overlap, .observer = &tags});
  for (std::uint64_t step = 0; step < 6; ++step) {
    tags.tags.clear();
    reducer.begin(step);
    for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
      // Each rank is done with its gradients in an order of its own.
      const auto parameter =
          (i * 5 + static_cast<std::size_t>(c.rank()) * step) % plan.parameters.size();
      write(reducer, plan, c.rank(), step, parameter);
      reducer.ready(parameter);
      if (c.rank() == 1) std::this_thread::sleep_for(100us);
    }
    const auto report = reducer.finish();
    expect_sums(reducer, plan, c.size(), step);
    std::vector<std::uint64_t> expected;
    for (std::size_t i = 0; i < plan.buckets.size(); ++i) expected.push_back(plan.tag(i));
    ASSERT_EQ(tags.tags, expected) << "one collective a bucket, in plan order, and no other";
    EXPECT_EQ(report.collectives, plan.buckets.size());
    EXPECT_LE(report.hidden_ns, report.busy_ns);
    if (!overlap || plan.buckets.size() == 1) {
      EXPECT_EQ(report.hidden_ns, 0U);
    }
  }
}

TEST(GradientReducer, sums_every_gradient_in_plan_order_without_a_word_besides) {
  for (const int size : {2, 3, 5})
    for (const std::uint64_t bytes : {1UL, 3000UL, 1UL << 30})
      for (const bool overlap : {true, false})
        test::on_local(size, [&](Communicator& c) { sum_steps(c, bytes, overlap); });
}

TEST(GradientReducer, sums_over_sockets_where_no_memory_is_shared) {
  test::LocalSetup setup;
  setup.tcp = true;
  test::on_local(
      3, [&](Communicator& c) { sum_steps(c, 3000, true); }, setup);
}

TEST(GradientReducer, hides_what_is_done_while_the_backward_pass_runs) {
  test::on_local(2, [](Communicator& c) {
    const auto plan = plan_buckets(layers(4), 1);
    GradientReducer reducer(c, plan);
    reducer.begin(0);
    for (auto parameter = plan.parameters.size(); parameter-- > 0;) {
      write(reducer, plan, c.rank(), 0, parameter);
      reducer.ready(parameter);
      std::this_thread::sleep_for(20ms);  // a layer that takes long
    }
    const auto report = reducer.finish();
    EXPECT_GT(report.hidden_ns, 0U);
    expect_sums(reducer, plan, c.size(), 0);
  });
}

TEST(GradientReducer, counts_gradients_that_never_came_as_zero) {
  test::on_local(3, [](Communicator& c) {
    const auto plan = plan_buckets(layers(6), 1);
    GradientReducer reducer(c, plan);
    reducer.begin(0);
    if (c.rank() != 1)  // rank 1 had no samples
      for (auto parameter = plan.parameters.size(); parameter-- > 0;) {
        std::fill_n(reducer.gradient(parameter).begin(), 300, 1.0F);
        reducer.ready(parameter);
      }
    reducer.finish();
    for (std::size_t i = 0; i < plan.parameters.size(); ++i)
      EXPECT_EQ(reducer.gradient(i)[0], 2.0F);
  });
}

CompressionSpec oktopk(const char* text, std::uint64_t warmup) {
  auto spec = parse_compression(text);
  spec.warmup = warmup;
  return spec;
}

TEST(GradientReducer, is_dense_in_the_warm_up_and_sparse_after_it) {
  test::on_local(3, [](Communicator& c) {
    const auto plan = plan_buckets(layers(12), 3000);
    GradientReducer reducer(c, plan, {.compression = oktopk("oktopk:0.05", 3)});
    for (std::uint64_t step = 0; step < 8; ++step) {
      reducer.begin(step);
      for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
        write(reducer, plan, c.rank(), step, i);
        reducer.ready(i);
      }
      const auto report = reducer.finish();
      if (step < 3) {
        EXPECT_EQ(report.items, report.elements);
        expect_sums(reducer, plan, c.size(), step);
      } else {
        EXPECT_LT(report.items, report.elements / 5);
      }
    }
  });
}

// All that comes in is sent or kept: sums of what came out and of what is kept, over ranks.
TEST(GradientReducer, keeps_what_it_does_not_send_when_the_density_changes) {
  constexpr int kRanks = 2;
  std::vector<double> came(kRanks), kept(kRanks);
  double sent = 0;
  test::on_local(kRanks, [&](Communicator& c) {
    const auto me = static_cast<std::size_t>(c.rank());
    const auto plan = plan_buckets(layers(8), 3000);
    GradientReducer reducer(c, plan, {.compression = oktopk("oktopk:0.5@0,0.1@3,0.02@6", 0)});
    for (std::uint64_t step = 0; step < 9; ++step) {
      std::fill(reducer.gradients().begin(), reducer.gradients().end(), 0.0F);
      reducer.begin(step);
      for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
        write(reducer, plan, c.rank(), step, i);
        for (const auto value : reducer.gradient(i)) came[me] += value;
        reducer.ready(i);
      }
      reducer.finish();
      if (c.rank() == 0)
        for (std::size_t i = 0; i < plan.parameters.size(); ++i)
          for (const auto value : reducer.gradient(i)) sent += value;
    }
    for (const auto& state : reducer.save())
      for (const auto& [name, array] : state.arrays())
        if (name.find("layer") != std::string::npos && array.dtype == DType::f32)
          for (const auto value : state.get<float>(name)) kept[me] += value;
  });
  EXPECT_GT(kept[0], 0);
  EXPECT_EQ(came[0] + came[1], sent + kept[0] + kept[1]);
}

// Steps in which gradients are added to what was kept back, or replaced where that is elsewhere;
// the sum of each, and what is kept in the end.
struct Steps {
  std::vector<std::vector<float>> sums;
  std::vector<State> kept;
};
Steps take_steps(Communicator& c, const BucketPlan& plan, bool accumulates, std::uint64_t pause,
                 int passes = 1) {
  const ReducerOptions options{.compression = oktopk("oktopk:0.5@0,0.1@4,0.02@7", 2),
                               .accumulates = accumulates};
  Steps steps;
  auto reducer = std::make_unique<GradientReducer>(c, plan, options);
  for (std::uint64_t step = 0; step < 11; ++step) {
    if (step == pause) {
      const auto saved = reducer->save();
      reducer = std::make_unique<GradientReducer>(c, plan, options);
      reducer->load(step, saved);
    }
    reducer->begin(step);
    for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
      const auto gradient = reducer->gradient(i);
      for (int pass = 0; pass < passes; ++pass)
        for (std::size_t at = 0; at < gradient.size(); ++at)
          gradient[at] += 0.1F * gradient_of(c.rank() + pass, step, i, at);
      reducer->ready(i);
    }
    reducer->finish();
    write_parts(reducer->sums(), steps.sums.emplace_back(plan.elements));
    for (const auto& part : reducer->sums()) std::fill(part.whole.begin(), part.whole.end(), 0.0F);
  }
  steps.kept = reducer->save();
  return steps;
}

TEST(GradientReducer, adds_gradients_to_what_it_kept_with_the_same_bits) {
  test::on_local(3, [](Communicator& c) {
    const auto plan = plan_buckets(layers(8), 3000);
    ASSERT_GT(plan.buckets.size(), 1U);
    const auto apart = take_steps(c, plan, false, 99);
    for (const std::uint64_t pause : {99, 1, 3, 4, 6}) {  // 99: none
      const auto together = take_steps(c, plan, true, pause);
      for (std::size_t step = 0; step < apart.sums.size(); ++step)
        ASSERT_EQ(together.sums[step], apart.sums[step]) << "step " << step << ", pause " << pause;
      EXPECT_EQ(together.kept, apart.kept) << "pause " << pause;
    }
  });
}

// Sums of more than two depend on their order: what was kept comes first, after a pause too.
TEST(GradientReducer, adds_to_what_it_kept_in_the_same_order_after_a_pause) {
  test::on_local(2, [](Communicator& c) {
    const auto plan = plan_buckets(layers(8), 3000);
    const auto whole = take_steps(c, plan, true, 99, 3);
    for (const std::uint64_t pause : {3, 4, 5, 7, 10}) {
      const auto paused = take_steps(c, plan, true, pause, 3);
      EXPECT_EQ(paused.sums, whole.sums) << pause;
      EXPECT_EQ(paused.kept, whole.kept) << pause;
    }
  });
}

TEST(GradientReducer, goes_on_from_what_it_saved_bit_for_bit) {
  test::on_local(2, [](Communicator& c) {
    const auto plan = plan_buckets(layers(8), 3000);
    const ReducerOptions options{.compression = oktopk("oktopk:0.5@0,0.05@3", 1)};
    const auto steps = [&](GradientReducer& reducer, std::uint64_t from, std::uint64_t to) {
      for (auto step = from; step < to; ++step) {
        reducer.begin(step);
        for (std::size_t i = 0; i < plan.parameters.size(); ++i)
          write(reducer, plan, c.rank(), step, i);
        reducer.finish();
      }
      return std::vector<float>(reducer.gradients().begin(), reducer.gradients().end());
    };
    for (const std::uint64_t pause : {2, 3, 5}) {
      GradientReducer whole(c, plan, options);
      const auto expected = steps(whole, 0, 8);
      std::vector<State> saved;
      {
        GradientReducer first(c, plan, options);
        steps(first, 0, pause);
        saved = first.save();
      }
      GradientReducer second(c, plan, options);
      second.load(pause, saved);
      EXPECT_EQ(steps(second, pause, 8), expected) << pause;
      EXPECT_EQ(second.save(), whole.save()) << pause;
    }
  });
}

TEST(GradientReducer, tells_everyone_when_a_rank_leaves_in_the_middle) {
  const auto errors = test::try_local(3, [](Communicator& c) {
    const auto plan = plan_buckets(layers(8), 1);
    GradientReducer reducer(c, plan);
    for (std::uint64_t step = 0; step < 4; ++step) {
      reducer.begin(step);
      for (auto parameter = plan.parameters.size(); parameter-- > 0;) {
        if (c.rank() == 2 && step == 2 && parameter == 4) return;
        reducer.ready(parameter);
      }
      reducer.finish();
    }
  });
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(errors[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(errors[static_cast<std::size_t>(rank)]->code(), Errc::peer_lost);
  }
}

}  // namespace
}  // namespace sinew
