// The best algorithm of each collective, few ranks and very many.
#include "model/cost_book.hpp"

#include <gtest/gtest.h>

#include "model/network_file.hpp"

namespace sinew {
namespace {

TEST(CostBook, keeps_the_best_of_all_that_fit) {
  const auto network = parse_network_line("alpha=5us,bw=1GB/s,gamma=10GB/s");
  CostBook book(network);
  for (const double bytes : {8.0, 65536.0, 16777216.0}) {
    const auto& best = book.best(Collective::allreduce, 8, bytes);
    for (const auto& algorithm : algorithms()) {
      const Question question{Collective::allreduce, 8, bytes};
      if (algorithm.collective != Collective::allreduce || !fits(algorithm, question, network))
        continue;
      EXPECT_LE(best.end.at, predict(algorithm, question, network).time) << algorithm.name;
    }
  }
  EXPECT_EQ(book.best(Collective::allreduce, 8, 8).algorithm, "recursive_doubling");
}

TEST(CostBook, chooses_among_those_asked_for) {
  CostBook book(parse_network_line("alpha=5us,bw=1GB/s"), {"ring"});
  EXPECT_EQ(book.best(Collective::allreduce, 8, 8).algorithm, "ring");
  // A collective that has none of them is not left without.
  EXPECT_FALSE(book.best(Collective::broadcast, 8, 8).algorithm.empty());
}

TEST(CostBook, large_worlds_pass_over_only_what_cannot_win) {
  const auto network = parse_network_line("alpha=5us,bw=25GB/s");
  CostBook book(network);
  const auto& best = book.best(Collective::allreduce, 1024, 110278272);
  EXPECT_EQ(best.algorithm, "halving_doubling");
  const auto ring = predict(find_algorithm(Collective::allreduce, "ring"),
                            {Collective::allreduce, 1024, 110278272}, network);
  EXPECT_LE(best.end.at, ring.time);
}

// Beyond some size Bruck's algorithms are computed and not simulated: one rank more must cost one
// digit more, and the part that has it.
TEST(CostBook, brucks_formulas_continue_the_simulations) {
  const auto network = parse_network_line("alpha=5us,bw=1GB/s");
  for (const auto collective : {Collective::alltoall, Collective::allgather}) {
    const auto simulated =
        predict(find_algorithm(collective, "bruck"), {collective, 4096, 4096 * 8}, network);
    CostBook book(network, {"bruck"});
    const auto& computed = book.best(collective, 4097, 4097 * 8.0);
    EXPECT_EQ(computed.algorithm, "bruck");
    EXPECT_NEAR(static_cast<double>(computed.end.at - simulated.time), 5e6 + 8e3, 8e3 + 1)
        << name(collective);
  }
}

TEST(CostBook, parts_of_private_size_travel_alone) {
  CostBook book(parse_network_line("alpha=5us,bw=1GB/s"));
  EXPECT_EQ(book.best(Collective::alltoall, 64, 512).algorithm, "bruck");
  EXPECT_NE(book.best(Collective::alltoall, 64, 512, 1, true).algorithm, "bruck");
}

TEST(CostBook, phases_add_up) {
  CostBook book(parse_network_line("alpha=5us,bw=1GB/s"));
  const Phase phases[] = {{"a", Collective::allreduce, 1e6}, {"b", Collective::allgather, 1e6}};
  const auto sum = book.sum(phases, 8);
  EXPECT_EQ(sum.end.at, book.best(Collective::allreduce, 8, 1e6).end.at +
                            book.best(Collective::allgather, 8, 1e6).end.at);
  EXPECT_NE(sum.algorithm.find(" + "), std::string::npos);
}

}  // namespace
}  // namespace sinew
