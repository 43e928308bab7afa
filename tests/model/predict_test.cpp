// Predictions: bounds hold for every algorithm, shares add up, idle inputs are named.
#include "model/predict.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/bounds.hpp"
#include "model/network_file.hpp"

namespace sinew {
namespace {

Network with_board() {
  auto network = parse_network_line("alpha=5us,bw=25GB/s,gamma=10GB/s,copy=20GB/s");
  network.board = BoardCosts{
      .wait_ps = 1e5, .slot_bytes = 1 << 19, .publish = Curve(0, 50), .gather = Curve(0, 60)};
  return network;
}

TEST(Predict, nothing_beats_its_bound) {
  for (const auto& network : {parse_network_line("alpha=5us,bw=25GB/s,gamma=10GB/s"),
                              parse_network_line("alpha=5us,bw=25GB/s,eager=1M"), with_board()})
    for (const auto& algorithm : algorithms())
      for (const int ranks : {1, 2, 3, 5, 8, 12, 16})
        for (const double bytes : {0.0, 8.0, 4096.0, 1e6, 1e8}) {
          Question question{algorithm.collective, ranks, bytes};
          for (int rank = 0; rank < ranks; ++rank) question.node_of.push_back(2 * rank / ranks);
          if (!fits(algorithm, question, network)) question.node_of.clear();
          if (!fits(algorithm, question, network)) continue;
          const auto answer = predict(algorithm, question, network);
          EXPECT_GE(static_cast<double>(answer.time), answer.lower_bound - 1)
              << name(algorithm.collective) << ' ' << algorithm.name << ' ' << ranks << ' '
              << bytes;
          if (answer.time > 0) {
            EXPECT_NEAR(answer.alpha + answer.beta + answer.gamma + answer.wait, 1, 1e-12);
          }
          EXPECT_GE(answer.idle, -1e-9);
          EXPECT_LE(answer.idle, 1 + 1e-9);
        }
}

TEST(Predict, bounds_are_those_of_the_books) {
  const auto network = parse_network_line("alpha=5us,bw=25GB/s,gamma=1GB/s");
  const auto bound = [&](Collective collective, double bytes) {
    return lower_bound_ps(collective, 6, bytes, network);
  };
  EXPECT_EQ(bound(Collective::allreduce, 8), 15e6);
  EXPECT_NEAR(bound(Collective::allgather, 6e8), 5e8 * 40, 1);
  EXPECT_NEAR(bound(Collective::allreduce, 6e8), 5e8 * 1000, 1);  // combining takes longest
  EXPECT_NEAR(bound(Collective::broadcast, 6e8), 6e8 * 40, 1);
  EXPECT_EQ(bound(Collective::barrier, 0), 15e6);
  EXPECT_EQ(lower_bound_ps(Collective::allreduce, 1, 1e9, network), 0);
}

std::vector<std::string> idle_inputs(std::string_view algorithm, Question question,
                                     std::string_view network) {
  return predict(find_algorithm(question.collective, algorithm), question,
                 parse_network_line(network))
      .no_effect;
}

TEST(Predict, inputs_without_effect_are_named) {
  using Inputs = std::vector<std::string>;
  EXPECT_EQ(
      idle_inputs("binomial", {Collective::broadcast, 4, 1e6}, "alpha=1us,bw=1GB/s,gamma=1GB/s"),
      Inputs{"gamma"});
  EXPECT_EQ(idle_inputs("ring", {Collective::allreduce, 4, 1e6}, "alpha=1us,bw=1GB/s,gamma=1GB/s"),
            Inputs{});
  EXPECT_EQ(
      idle_inputs("ring", {Collective::allreduce, 4, 1e6, 2, 7}, "alpha=1us,bw=1GB/s,eager=4K"),
      (Inputs{"eager", "segments", "root"}));
  EXPECT_EQ(idle_inputs("dissemination", {Collective::barrier, 4, 0}, "alpha=1us,bw=1GB/s"),
            Inputs{"bandwidth"});
  EXPECT_EQ(
      idle_inputs("binomial", {Collective::broadcast, 4, 1e6}, "alpha=1us,bw=1GB/s,exchange=1GB/s"),
      Inputs{"exchange"});
}

TEST(Predict, the_error_bar_is_the_networks) {
  auto network = parse_network_line("alpha=1us,bw=1GB/s");
  network.error = {0.5, 3};
  const auto answer = predict(find_algorithm(Collective::allreduce, "ring"),
                              {Collective::allreduce, 4, 1e6}, network);
  EXPECT_EQ(answer.low, static_cast<double>(answer.time) / 2);
  EXPECT_EQ(answer.high, static_cast<double>(answer.time) * 3);
}

}  // namespace
}  // namespace sinew
