// The verifier must object: to every way we know of getting a schedule wrong.
#include <gtest/gtest.h>
#include <sinew/verify.hpp>

#include <functional>

#include "schedule/builder.hpp"
#include "support/worlds.hpp"

namespace sinew {
namespace {

constexpr Conditions kBuffered{.sends = Sends::buffered};
constexpr Conditions kInPlace{.placement = Placement::in_place};
constexpr Conditions kReferenced{.exposure = Exposure::referenced};

World registered(Collective collective, std::string_view algorithm, int size) {
  return make_world(find_algorithm(collective, algorithm), size);
}

World built(Collective collective, int size, std::uint32_t input, std::uint32_t output,
            std::uint32_t rounds, const std::function<void(Builder&, int)>& part) {
  World world{collective, 0, {}};
  for (int rank = 0; rank < size; ++rank) {
    Builder builder("handmade", rank, size, input, output);
    part(builder, rank);
    world.ranks.push_back(builder.finish(rounds));
  }
  return world;
}

void expect_refused(const World& world, const std::string& why, Conditions conditions = {}) {
  const auto verdict = verify(world, conditions);
  ASSERT_FALSE(verdict.ok()) << "not refused, though: " << why;
  EXPECT_NE(verdict.fault->why.find(why), std::string::npos) << verdict.fault->why;
}

// Steps of rank `rank` that do `op`, by index.
std::vector<std::size_t> steps_doing(const World& world, int rank, Op op) {
  std::vector<std::size_t> found;
  const auto& steps = world.ranks[static_cast<std::size_t>(rank)].steps;
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].op == op) found.push_back(i);
  return found;
}

TEST(Mutants, every_dropped_step_is_refused_and_the_story_names_rank_and_round) {
  const std::pair<Collective, std::string_view> rows[] = {
      {Collective::allreduce, "ring"},     {Collective::allreduce, "halving_doubling"},
      {Collective::allreduce, "flat"},     {Collective::allreduce, "direct"},
      {Collective::broadcast, "binomial"}, {Collective::alltoall, "bruck"},
      {Collective::gather, "binomial"},    {Collective::reduce_scatter, "recursive_halving"},
      {Collective::allgather, "linear"},   {Collective::barrier, "dissemination"}};
  for (const auto& [collective, algorithm] : rows) {
    const auto whole = registered(collective, algorithm, 4);
    for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank)
      for (std::size_t i = 0; i < whole.ranks[rank].steps.size(); ++i) {
        auto world = whole;
        auto& steps = world.ranks[rank].steps;
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
        const auto verdict = verify(world);
        ASSERT_FALSE(verdict.ok()) << algorithm << " without step " << i << " of rank " << rank;
        EXPECT_GE(verdict.fault->rank, 0);
        EXPECT_LE(verdict.fault->round, world.ranks[rank].rounds);
        EXPECT_NE(verdict.fault->why.find("rank "), std::string::npos) << verdict.fault->why;
        const bool has_time = verdict.fault->why.find("round ") != std::string::npos ||
                              verdict.fault->why.find("never written") != std::string::npos;
        EXPECT_TRUE(has_time) << verdict.fault->why;
      }
  }
}

TEST(Mutants, a_chunk_swapped_for_another_is_refused) {
  for (const auto algorithm : {"ring", "halving_doubling", "direct"}) {
    const auto whole = registered(Collective::allreduce, algorithm, 4);
    for (std::size_t i = 0; i < whole.ranks[1].steps.size(); ++i) {
      auto world = whole;
      auto& step = world.ranks[1].steps[i];
      auto& range = step.dst.count > 0 ? step.dst : step.src;
      if (range.count != 1) continue;
      range.first = (range.first + 1) % world.ranks[1].chunks[static_cast<std::size_t>(range.buf)];
      EXPECT_FALSE(verify(world).ok()) << algorithm << " step " << i;
    }
  }
}

TEST(Mutants, a_redirected_message_is_refused) {
  const auto whole = registered(Collective::allreduce, "ring", 5);
  for (const Op op : {Op::send, Op::recv, Op::recv_reduce})
    for (const auto i : steps_doing(whole, 2, op)) {
      auto world = whole;
      auto& peer = world.ranks[2].steps[i].peer;
      peer = peer == 0 ? 4 : 0;
      EXPECT_FALSE(verify(world).ok()) << name(op) << " " << i;
    }
}

TEST(Mutants, a_sum_that_replaces_or_counts_twice_is_refused) {
  auto replaces = registered(Collective::allreduce, "ring", 4);
  replaces.ranks[3].steps[steps_doing(replaces, 3, Op::recv_reduce)[1]].op = Op::recv;
  expect_refused(replaces, "is missing");
  auto twice = registered(Collective::allreduce, "ring", 4);
  twice.ranks[3].steps[steps_doing(twice, 3, Op::recv)[0]].op = Op::recv_reduce;
  expect_refused(twice, "is counted 2 times");
}

TEST(Mutants, the_verdict_of_an_untouched_schedule_is_clean) {
  const auto verdict = verify(registered(Collective::allreduce, "ring", 4));
  EXPECT_TRUE(verdict.ok());
  EXPECT_TRUE(verdict.same_order);
  EXPECT_FALSE(verdict.rank_order);
}

// Rank r sends right and receives from the left, in rounds of their own.
World ring_in_two_rounds(int size) {
  return built(Collective::allgather, size, 1, static_cast<std::uint32_t>(size),
               static_cast<std::uint32_t>(2 * size), [=](Builder& b, int rank) {
                 const auto chunk = [=](int k) {
                   return out(static_cast<std::uint32_t>((rank - k + 2 * size) % size));
                 };
                 b.copy(in(0), chunk(0));
                 for (int k = 0; k < size - 1; ++k) {
                   b.next_round();
                   b.send((rank + 1) % size, chunk(k));
                   b.next_round();
                   b.recv((rank + size - 1) % size, chunk(k + 1));
                 }
               });
}

TEST(Sends, a_ring_that_sends_before_it_receives_needs_buffers) {
  const auto world = ring_in_two_rounds(4);
  EXPECT_TRUE(verify(world, kBuffered).ok());
  expect_refused(world, "deadlock");
  EXPECT_EQ(verify(world).fault->rank, 0);
  EXPECT_EQ(verify(world).fault->round, 1U);
}

TEST(Sends, waiting_for_each_other_deadlocks_either_way) {
  const auto world = built(Collective::alltoall, 2, 2, 2, 2, [](Builder& b, int rank) {
    const auto mine = static_cast<std::uint32_t>(rank), other = 1 - mine;
    b.copy(in(mine), out(mine));
    b.recv(1 - rank, out(other));
    b.next_round();
    b.send(1 - rank, in(other));
  });
  expect_refused(world, "deadlock");
  expect_refused(world, "deadlock", kBuffered);
}

TEST(Sends, a_message_nobody_receives_is_refused) {
  auto world = registered(Collective::broadcast, "linear", 3);
  world.ranks[0].steps.push_back(world.ranks[0].steps.back());
  expect_refused(world, "never receives it", kBuffered);
}

TEST(Sends, lengths_must_match) {
  auto world = registered(Collective::allgather, "recursive_doubling", 4);
  world.ranks[0].steps[steps_doing(world, 0, Op::recv)[1]].dst.count = 1;
  expect_refused(world, "sends 2 chunk(s)");
}

TEST(Rounds, reading_and_writing_a_chunk_in_one_round_is_refused) {
  const auto world = built(Collective::allreduce, 2, 1, 1, 2, [](Builder& b, int rank) {
    b.copy(in(0), out(0));
    b.next_round();
    b.send(1 - rank, out(0));
    b.recv_reduce(1 - rank, out(0));  // may change what is being sent
  });
  expect_refused(world, "use the same chunk in one round");
}

TEST(Rounds, overlapping_copies_are_refused) {
  const auto world = built(Collective::broadcast, 1, 4, 4, 2, [](Builder& b, int) {
    b.copy(in(0, 4), out(0, 4));
    b.next_round();
    b.copy(out(0, 3), out(1, 3));
  });
  expect_refused(world, "overlaps itself");
}

TEST(Rounds, input_is_read_only_and_what_was_never_written_is_not_read) {
  expect_refused(
      built(Collective::allreduce, 1, 2, 2, 1, [](Builder& b, int) { b.copy(in(0), in(1)); }),
      "read-only");
  expect_refused(built(Collective::allreduce, 1, 1, 1, 1,
                       [](Builder& b, int) { b.copy(scratch(b.add_scratch(0, 1)), out(0)); }),
                 "holds nothing yet");
}

TEST(Roots, only_the_root_has_the_buffers_of_a_root) {
  expect_refused(
      built(Collective::broadcast, 2, 1, 1, 1, [](Builder& b, int) { b.copy(in(0), out(0)); }),
      "which only the root has");
  expect_refused(built(Collective::reduce, 2, 1, 1, 2,
                       [](Builder& b, int rank) {
                         b.copy(in(0), out(0));
                         b.next_round();
                         rank == 0 ? b.recv_reduce(1, out(0)) : b.send(0, out(0));
                       }),
                 "which only the root has");
}

TEST(Channels, two_channels_must_not_share_what_one_writes) {
  const auto world = built(Collective::broadcast, 2, 1, 1, 2, [](Builder& b, int rank) {
    if (rank == 0) {
      b.copy(in(0), out(0));
      b.at(0, 1);
      b.send(1, out(0));
    } else {
      b.at(0, 1);
      b.recv(0, out(0));
    }
  });
  expect_refused(world, "channels race");
}

World publishes(std::uint32_t rounds, const std::function<void(Builder&, int)>& part) {
  return built(Collective::broadcast, 2, 1, 1, rounds, [&](Builder& b, int rank) {
    b.board_chunks(1);
    if (rank == 0) b.copy(in(0), out(0));
    part(b, rank);
  });
}

TEST(Board, publishing_a_chunk_twice_is_refused) {
  expect_refused(publishes(3,
                           [](Builder& b, int rank) {
                             if (rank == 0) b.publish(in(0), 0);
                             b.next_round();
                             if (rank == 0) b.publish(in(0), 0);
                             b.next_round();
                             if (rank == 1) b.gather_copy(0, 0, out(0));
                           }),
                 "second time");
}

TEST(Board, gathering_before_or_in_the_round_of_publishing_is_refused) {
  for (const std::uint32_t published : {1U, 2U}) {
    const auto world = publishes(4, [=](Builder& b, int rank) {
      b.at(rank == 0 ? published : 1);
      if (rank == 0) b.publish(in(0), 0);
      if (rank == 1) b.gather_copy(0, 0, out(0));
    });
    const auto verdict = verify(world);
    ASSERT_FALSE(verdict.ok());
    EXPECT_EQ(verdict.fault->rank, 1);
    EXPECT_EQ(verdict.fault->round, 1U);
  }
}

TEST(Board, what_others_write_into_my_buffer_must_be_waited_for) {
  auto world = registered(Collective::allreduce, "shared", 3);
  ASSERT_TRUE(verify(world).ok());
  auto& steps = world.ranks[2].steps;
  steps.erase(steps.begin() +
              static_cast<std::ptrdiff_t>(steps_doing(world, 2, Op::gather_copy).back()));
  expect_refused(world, "without waiting");
}

TEST(Board, a_published_reference_must_not_be_overwritten_while_read) {
  // Rank 0 publishes its output and then changes it, before rank 1 can have read it.
  const auto world = built(Collective::allreduce, 2, 1, 1, 4, [](Builder& b, int rank) {
    b.board_chunks(1);
    b.copy(in(0), out(0));
    b.next_round();
    b.publish(out(0), 0);
    b.next_round();
    b.gather_copy(1 - rank, 0, scratch(b.add_scratch(0, 1)));
    b.next_round();
    b.reduce(scratch(0), out(0));
  });
  EXPECT_TRUE(verify(world).ok());
  expect_refused(world, "may still be reading", kReferenced);
}

TEST(Board, returning_while_others_may_still_read_by_reference_is_refused) {
  for (const auto collective :
       {Collective::allreduce, Collective::broadcast, Collective::allgather}) {
    auto world = registered(collective, "pull", 3);
    EXPECT_TRUE(verify(world).ok());
    auto& steps = world.ranks[0].steps;
    ASSERT_EQ(steps.back().op, Op::gather_copy);  // waits for all
    steps.pop_back();
    expect_refused(world, "it waits for nothing that comes after");
  }
}

TEST(Board, what_is_published_by_reference_is_not_written_by_others) {
  auto world = registered(Collective::allreduce, "shared", 2);
  for (auto& schedule : world.ranks) schedule.by_reference = true;
  expect_refused(world, "can only be read");
  world.ranks[0].by_reference = false;
  expect_refused(world, "otherwise than rank 0");
}

TEST(InPlace, writing_over_input_that_is_still_needed_is_refused) {
  const auto world = registered(Collective::alltoall, "pairwise", 3);
  EXPECT_TRUE(verify(world).ok());
  EXPECT_FALSE(verify(world, kInPlace).ok());
}

TEST(InPlace, a_part_lies_inside_the_larger_buffer_at_its_rank) {
  // Rank 1 keeps its own part where it lies: right out of place only if it is copied.
  const auto lazy = built(Collective::allgather, 2, 1, 2, 1, [](Builder& b, int rank) {
    b.send(1 - rank, in(0));
    b.recv(1 - rank, out(static_cast<std::uint32_t>(1 - rank)));
  });
  EXPECT_TRUE(verify(lazy, kInPlace).ok());
  expect_refused(lazy, "never written");
}

TEST(Barrier, leaving_before_somebody_has_come_is_refused) {
  const auto world = built(Collective::barrier, 4, 0, 0, 1, [](Builder& b, int rank) {
    b.send((rank + 1) % 4, in(0, 0));
    b.recv((rank + 3) % 4, out(0, 0));
  });
  expect_refused(world, "may leave the barrier before");
}

TEST(Form, malformed_worlds_are_refused_with_the_rank_and_the_step) {
  const std::pair<std::string, std::function<void(World&)>> cases[] = {
      {"there are no ranks", [](World& w) { w.ranks.clear(); }},
      {"root 9 is not a rank", [](World& w) { w.root = 9; }},
      {"rank 1 says it is rank 0", [](World& w) { w.ranks[1].rank = 0; }},
      {"otherwise than rank 0", [](World& w) { w.ranks[2].rounds += 1; }},
      {"lies outside", [](World& w) { w.ranks[0].steps[1].src.first = 4; }},
      {"lies outside", [](World& w) { w.ranks[0].steps[1].src.first = 0xFFFFFFFF; }},
      {"not another rank", [](World& w) { w.ranks[0].steps[1].peer = 0; }},
      {"not another rank", [](World& w) { w.ranks[0].steps[1].peer = 4; }},
      {"is past the schedule's", [](World& w) { w.ranks[3].steps.back().round = 99; }},
      {"comes after a later round",
       [](World& w) { std::swap(w.ranks[1].steps[1], w.ranks[1].steps[3]); }},
      {"differ in chunks", [](World& w) { w.ranks[1].steps[0].dst.count = 1; }},
      {"as many chunks in as out",
       [](World& w) {
         for (auto& s : w.ranks) s.chunks[0] = 5;
       }},
      {"scratch chunks", [](World& w) { w.ranks[0].chunks[2] = 2; }},
      {"group that is empty",
       [](World& w) {
         for (auto& s : w.ranks) s.groups = {{}};
       }},
      {"only the board operand", [](World& w) { w.ranks[0].steps[0].dst.buf = Buf::board; }},
  };
  for (const auto& [why, spoil] : cases) {
    auto world = registered(Collective::allreduce, "ring", 4);
    spoil(world);
    expect_refused(world, why);
  }
}

}  // namespace
}  // namespace sinew
