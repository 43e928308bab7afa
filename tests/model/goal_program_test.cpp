// GOAL in: what is read, what is refused, and that schedules written as GOAL take the same time.
#include "model/goal_program.hpp"

#include <gtest/gtest.h>

#include <sinew/error.hpp>
#include "model/network_file.hpp"
#include "model/predict.hpp"
#include "schedule/goal.hpp"

namespace sinew {
namespace {

const Network kNetwork = parse_network_line("alpha=5us,bw=1GB/s");

double end_us(std::string_view text, const Network& network = kNetwork) {
  return simulate_goal(parse_goal(text, "x.goal"), network).end_ps / 1e6;
}

std::string refusal(std::string_view text) {
  try {
    simulate_goal(parse_goal(text, "x.goal"), kNetwork);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Goal, a_message_after_a_computation) {
  EXPECT_NEAR(end_us("num_ranks 2\n"
                     "rank 0 {\n l1: calc 3000 cpu 0\n l2: send 2000b to 1 tag 7\n"
                     " l2 requires l1\n}\n"
                     "rank 1 {\n r: recv 2000b from 0 tag 7 // comes\n c: calc 1000\n"
                     " c requires r\n}\n"),
              3 + 5 + 2 + 1, 1e-9);
}

TEST(Goal, a_port_sends_one_message_at_a_time) {
  const std::string two =
      "num_ranks 3\nrank 0 {\na: send 1000b to 1\nb: send 1000b to 2\n}\n"
      "rank 1 { a: recv 1000b from 0 }\nrank 2 { a: recv 1000b from 0 }\n";
  EXPECT_NEAR(end_us(two), 12, 1e-9);
}

TEST(Goal, short_messages_do_not_wait_for_their_receiver) {
  const std::string late =
      "num_ranks 2\nrank 0 {\na: send 100b to 1\nb: calc 1000\nb requires a\n}\n"
      "rank 1 {\nc: calc 20000\nr: recv 100b from 0\nr requires c\n}\n";
  EXPECT_NEAR(end_us(late), 26.1, 1e-9);  // rank 0 computes after the message has gone
  EXPECT_NEAR(end_us(late, parse_network_line("alpha=5us,bw=1GB/s,eager=4K")), 20, 1e-9);
}

TEST(Goal, start_dependences_do_not_wait_for_the_end) {
  EXPECT_NEAR(end_us("num_ranks 1\nrank 0 {\na: calc 5000\nb: calc 0\nc: calc 1000\n"
                     "b irequires a\nc requires b\n}\n"),
              6, 1e-9);
}

TEST(Goal, schedules_take_the_time_of_the_simulator) {
  auto network = parse_network_line("alpha=5us,bw=1GB/s,gamma=10GB/s");
  for (const auto* name : {"ring", "recursive_doubling", "halving_doubling"})
    for (const int ranks : {2, 4, 8, 16}) {
      const auto& algorithm = find_algorithm(Collective::allreduce, name);
      const double bytes = 16384;
      // The copy into the output is in the text; in the simulator it is in place.
      auto world = make_world(algorithm, ranks);
      for (auto& schedule : world.ranks)
        std::erase_if(schedule.steps, [](const Step& step) { return step.op == Op::copy; });
      const auto goal = simulate_goal(
          parse_goal(to_goal(world, static_cast<std::uint64_t>(bytes)), "x.goal"), network);
      const auto direct = predict(algorithm, {Collective::allreduce, ranks, bytes}, network);
      EXPECT_NEAR(goal.end_ps, static_cast<double>(direct.time), 1e-3 * goal.end_ps)
          << name << ' ' << ranks;
      EXPECT_EQ(goal.messages, static_cast<double>(direct.messages));
    }
}

TEST(Goal, mistakes_name_their_line) {
  EXPECT_EQ(refusal("rank 0 {}"), "x.goal:1: 'rank' where 'num_ranks' should be");
  EXPECT_EQ(refusal("num_ranks 2\nrank 2 { }\n"), "x.goal:2: '2' is not a rank");
  EXPECT_EQ(refusal("num_ranks 1\nrank 0 {\n a: send xb to 0\n}\n"),
            "x.goal:3: 'x' is not bytes such as 16b");
  EXPECT_EQ(refusal("num_ranks 1\nrank 0 {\n a: calc 1\n a requires b\n}\n"),
            "x.goal:5: there is no 'b' above");
  EXPECT_EQ(refusal("num_ranks 1\nrank 0 {\n a: calc 1\n"),
            "x.goal:4: the text ends where an operation should be");
}

TEST(Goal, what_never_ends_is_named) {
  EXPECT_EQ(refusal("num_ranks 2\nrank 0 { a: recv 8b from 1 tag 3 }\nrank 1 { }\n"),
            "rank 0, operation 0 (recv from rank 1, tag 3) never ends: nobody is there for it, or "
            "ranks wait for each other in a circle");
}

}  // namespace
}  // namespace sinew
