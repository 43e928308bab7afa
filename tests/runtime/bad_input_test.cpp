// Bad calls get an error that says what is wrong, before anything is changed: the next good call on
// the same communicator works.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/local_ranks.hpp"
#include "transport/local/local.hpp"
#include "transport/shm/shm.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

struct Row {
  std::string_view what;
  Errc code;
  std::vector<std::string> says;
  std::function<void(Communicator&)> call;
};

std::vector<float> numbers(std::size_t count) { return std::vector<float>(count, 1); }

// All on 3 ranks, every rank the same.
std::vector<Row> rows() {
  static std::vector<float> data = numbers(300), out = numbers(300);
  const auto in = std::span<const float>(data);
  return {
      {"a mistyped algorithm",
       Errc::invalid_argument,
       {"unknown allreduce algorithm 'rign'", "did you mean 'ring'?"},
       [](Communicator& c) {
         auto d = numbers(10);
         c.allreduce(std::span(d), ReduceOp::sum, {.algorithm = "rign"});
       }},
      {"another collective's algorithm",
       Errc::invalid_argument,
       {"unknown broadcast algorithm 'ring'"},
       [](Communicator& c) {
         auto d = numbers(10);
         c.broadcast(std::span(d), 0, {.algorithm = "ring"});
       }},
      {"a root past the last rank",
       Errc::invalid_argument,
       {"broadcast", "root 3 is not a rank of 3"},
       [](Communicator& c) {
         auto d = numbers(10);
         c.broadcast(std::span(d), 3);
       }},
      {"a negative root",
       Errc::invalid_argument,
       {"reduce", "root -1 is not a rank of 3"},
       [=](Communicator& c) {
         auto o = numbers(300);
         c.reduce(in, std::span(o), -1);
       }},
      {"an algorithm for powers of two",
       Errc::unsupported,
       {"recursive_halving", "does not fit", "3 ranks"},
       [=](Communicator& c) {
         auto o = numbers(100);
         c.reduce_scatter(in, std::span(o), ReduceOp::sum, {.algorithm = "recursive_halving"});
       }},
      {"an algorithm for several nodes",
       Errc::unsupported,
       {"two_level", "does not fit"},
       [](Communicator& c) {
         auto d = numbers(10);
         c.allreduce(std::span(d), ReduceOp::sum, {.algorithm = "two_level"});
       }},
      {"bits of floats",
       Errc::unsupported,
       {"f32 has no bxor", "integers"},
       [](Communicator& c) {
         auto d = numbers(10);
         c.allreduce(std::span(d), ReduceOp::bxor);
       }},
      {"bits of halves",
       Errc::unsupported,
       {"bf16 has no band"},
       [](Communicator& c) {
         std::vector<bf16> d(10);
         c.allreduce(std::span(d), ReduceOp::band);
       }},
      {"too little room for the result",
       Errc::invalid_argument,
       {"a buffer of 10 elements, but 300 are needed"},
       [=](Communicator& c) {
         auto o = numbers(10);
         c.allreduce(in, std::span(o));
       }},
      {"too little room for all parts",
       Errc::invalid_argument,
       {"a buffer of 300 elements, but 900 are needed"},
       [=](Communicator& c) {
         auto o = numbers(300);
         c.allgather(in, std::span(o));
       }},
      {"counts for too few ranks",
       Errc::invalid_argument,
       {"2 counts for 3 ranks"},
       [=](Communicator& c) {
         auto o = numbers(300);
         const std::size_t counts[] = {1, 2};
         c.allgatherv(in, std::span(o), counts);
       }},
      {"a part shorter than its count",
       Errc::invalid_argument,
       {"a part of 5 elements, but counts say"},
       [=](Communicator& c) {
         auto o = numbers(300);
         const std::size_t counts[] = {50, 50, 50};
         c.allgatherv(in.first(5), std::span(o), counts);
       }},
      {"ragged parts for an algorithm of equal ones",
       Errc::unsupported,
       {"bruck needs parts of equal size"},
       [=](Communicator& c) {
         auto o = numbers(300);
         const std::size_t counts[] = {50, 50, 50};
         c.alltoallv(in, counts, std::span(o), counts, {.algorithm = "bruck"});
       }},
  };
}

TEST(BadInput, is_told_apart_and_nothing_is_lost) {
  for (const auto& row : rows()) {
    const auto errors = test::try_local(3, [&](Communicator& c) {
      try {
        row.call(c);
        ADD_FAILURE() << row.what << " was accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), row.code) << row.what << ": " << error.what();
        for (const auto& says : row.says)
          EXPECT_NE(std::string(error.what()).find(says), std::string::npos)
              << row.what << ": " << error.what();
      }
      auto data = numbers(5);
      c.allreduce(std::span(data));
      EXPECT_EQ(data[4], 3.0F) << row.what;
    });
    for (const auto& error : errors)
      EXPECT_FALSE(error.has_value()) << row.what << ": " << error->what();
  }
}

TEST(BadInput, counts_that_differ_between_ranks_are_a_mismatch_that_names_both) {
  const auto errors = test::try_local(3, [](Communicator& c) {
    auto data = numbers(c.rank() == 2 ? 99 : 100);
    c.allreduce(std::span(data));
    c.barrier();
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), Errc::mismatch);
    EXPECT_NE(std::string(error->what()).find("allreduce of 99 f32 sum"), std::string::npos)
        << error->what();
    EXPECT_NE(std::string(error->what()).find("allreduce of 100 f32 sum"), std::string::npos)
        << error->what();
  }
}

World named(World world, std::string_view name) {
  for (auto& schedule : world.ranks) schedule.name = name;
  return world;
}

TEST(Install, refuses_a_schedule_that_does_not_verify_with_the_counterexample) {
  test::on_local(4, [](Communicator& c) {
    auto world = named(make_world(find_algorithm(Collective::allreduce, "ring"), 4), "broken");
    auto& steps = world.ranks[2].steps;
    steps.erase(steps.begin() + 2);
    try {
      c.install(world);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::not_verified);
      const std::string text = error.what();
      EXPECT_NE(text.find("allreduce broken is refused"), std::string::npos) << text;
      EXPECT_NE(text.find("rank"), std::string::npos) << text;
      EXPECT_NE(text.find("round"), std::string::npos) << text;
    }
    auto data = numbers(5);
    EXPECT_THROW(c.allreduce(std::span(data), ReduceOp::sum, {.algorithm = "broken"}), Error);
    c.barrier();
  });
}

TEST(Install, refuses_worlds_of_another_size) {
  test::on_local(2, [](Communicator& c) {
    try {
      c.install(make_world(find_algorithm(Collective::allreduce, "ring"), 4));
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("a schedule for 4 ranks, but there are 2"),
                std::string::npos);
    }
  });
}

TEST(Install, runs_what_it_has_verified_and_a_later_one_of_that_name_replaces_it) {
  test::on_local(3, [](Communicator& c) {
    for (const auto algorithm : {"ring", "binomial", "flat", "direct"}) {
      c.install(named(make_world(find_algorithm(Collective::allreduce, algorithm), 3), "mine"));
      for (const auto op : {ReduceOp::sum, ReduceOp::avg}) {
        std::vector<std::int32_t> data(1000, 3 * (c.rank() + 1));
        c.allreduce(std::span(data), op, {.algorithm = "mine"});
        EXPECT_EQ(data[999], op == ReduceOp::avg ? 6 : 18) << algorithm;
      }
    }
  });
}

// Rank 0 folds and publishes; the others only copy. An average must be divided once on all of them.
TEST(Install, averages_are_right_when_only_one_rank_folds) {
  World world{Collective::allreduce, 0, {}};
  for (int rank = 0; rank < 3; ++rank) {
    Schedule schedule{"one_folds", rank, 3, {1, 1, 0, 2}, 4, {}, {}, {}};
    const Chunks in{Buf::input, 0, 1}, out{Buf::output, 0, 1};
    schedule.steps.push_back(
        {.op = Op::publish, .round = 0, .src = in, .board = {Buf::board, 0, 1}});
    if (rank == 0) {
      schedule.steps.push_back({.op = Op::gather_reduce,
                                .round = 1,
                                .src = in,
                                .dst = out,
                                .board = {Buf::board, 0, 1}});
      schedule.steps.push_back(
          {.op = Op::publish, .round = 2, .src = out, .board = {Buf::board, 1, 1}});
    } else {
      schedule.steps.push_back(
          {.op = Op::gather_copy, .round = 3, .peer = 0, .dst = out, .board = {Buf::board, 1, 1}});
    }
    world.ranks.push_back(schedule);
  }
  test::on_local(3, [&](Communicator& c) {
    c.install(world);
    for (int repeat = 0; repeat < 4; ++repeat) {
      std::vector<float> data(1000, static_cast<float>(3 * (c.rank() + 1)));
      c.allreduce(std::span(data), ReduceOp::avg, {.algorithm = "one_folds"});
      EXPECT_EQ(data[999], 6.0F);
      data.assign(1000, 1);
      c.allreduce(std::span(data), ReduceOp::sum);  // positions still agree
      EXPECT_EQ(data[0], 3.0F);
    }
  });
}

// Rank 2 has no board step at all and still counts the same positions as the others.
TEST(Install, schedules_in_which_a_rank_skips_the_board_do_not_upset_later_calls) {
  World world{Collective::broadcast, 0, {}};
  for (int rank = 0; rank < 3; ++rank) {
    Schedule schedule{"half_board", rank, 3, {1, 1, 0, 1}, 2, {{0, 1}, {2}}, {}, {}};
    const Chunks in{Buf::input, 0, 1}, out{Buf::output, 0, 1};
    if (rank == 0) {
      schedule.steps.push_back({.op = Op::copy, .src = in, .dst = out});
      schedule.steps.push_back(
          {.op = Op::publish, .group = 0, .src = in, .board = {Buf::board, 0, 1}});
      schedule.steps.push_back({.op = Op::send, .peer = 2, .src = in});
    }
    if (rank == 1)
      schedule.steps.push_back({.op = Op::gather_copy,
                                .round = 1,
                                .peer = 0,
                                .group = 0,
                                .dst = out,
                                .board = {Buf::board, 0, 1}});
    if (rank == 2) schedule.steps.push_back({.op = Op::recv, .peer = 0, .dst = out});
    world.ranks.push_back(schedule);
  }
  test::on_local(3, [&](Communicator& c) {
    c.install(world);
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::vector<std::int32_t> data(500, c.rank() == 0 ? repeat : -1), sum(500, 1);
      c.broadcast(std::span(data), 0, {.algorithm = "half_board"});
      c.allreduce(std::span(sum), ReduceOp::sum, {.algorithm = "flat"});
      ASSERT_EQ(data[499], repeat);
      ASSERT_EQ(sum[499], 3);
    }
  });
}

TEST(Joining, is_refused_with_a_reason) {
  EXPECT_THROW(LocalHub::make(0), Error);
  EXPECT_THROW(LocalHub::make(2)->join(2), Error);
  EXPECT_THROW(join_shm({"sinew-test-x", 3, 3, {}, 0}, Clock::now()), Error);
  EXPECT_THROW(join_shm({std::string(200, 'x'), 0, 1, {}, 0}, Clock::now() + 1s), Error);
  try {
    join_shm({fmt::format("sinew-test-missing-{}", getpid()), 0, 3, {}, 0}, Clock::now() + 50ms);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::timeout);
    EXPECT_NE(std::string(error.what()).find("rank(s) 1, 2 of 3 did not join in time"),
              std::string::npos)
        << error.what();
  }
}

TEST(Joining, without_memory_for_the_segment_says_what_would_help) {
  try {
    LocalHub::make(
        4, {.slot_bytes = std::size_t{1} << 50, .lane_slot_bytes = 4096, .arena_bytes = 4096});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory) << error.what();
    EXPECT_NE(std::string(error.what()).find("would help"), std::string::npos);
  }
}

}  // namespace
}  // namespace sinew
