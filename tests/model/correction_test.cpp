// Predictions corrected by what whole collectives took: where, by how much, and what is left.
#include "model/correction.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <sinew/error.hpp>
#include "model/calibration.hpp"
#include "model/network_file.hpp"
#include "model/predict.hpp"
#include "model/select.hpp"

namespace sinew {
namespace {

Network measured_with_two() {
  Network network;
  network.one_way = Curve(1e6, 100);
  network.provenance.ranks = 2;
  network.error = {0.25, 4};
  network.corrected_error = {0.5, 2};
  network.corrections = {{Collective::allreduce, "ring", {{1e3, 0.5}, {1e5, 2}, {1e6, 3}}}};
  return network;
}

double ring(const Network& network, int ranks, double bytes) {
  const auto& algorithm = find_algorithm(Collective::allreduce, "ring");
  return correction(network, algorithm, {.size = ranks, .node_of = {}}, bytes).value_or(-1);
}

TEST(Correction, follows_the_logarithm_of_the_size_and_stays_as_it_is_beyond) {
  const auto network = measured_with_two();
  EXPECT_DOUBLE_EQ(ring(network, 2, 1e3), 0.5);
  EXPECT_NEAR(ring(network, 2, 1e4), 1, 1e-12);  // half the way from a half to two
  EXPECT_DOUBLE_EQ(ring(network, 2, 1e5), 2);
  EXPECT_DOUBLE_EQ(ring(network, 2, 8), 0.5);
  EXPECT_DOUBLE_EQ(ring(network, 2, 1e9), 3);
}

TEST(Correction, is_for_what_was_measured_only) {
  auto network = measured_with_two();
  EXPECT_EQ(ring(network, 4, 1e3), -1);
  const auto& other = find_algorithm(Collective::allreduce, "binomial");
  const auto& namesake = find_algorithm(Collective::allgather, "ring");
  const Place place{.size = 2, .node_of = {}};
  EXPECT_FALSE(correction(network, other, place, 1e3));
  EXPECT_FALSE(correction(network, namesake, place, 1e3));
  network.topology.levels.push_back({.name = "node", .size = 2});  // ranks are no more alike
  EXPECT_EQ(ring(network, 2, 1e3), -1);
}

TEST(Correction, is_in_predictions_and_in_the_choice_of_algorithms) {
  const auto network = measured_with_two();
  auto plain = network;
  plain.corrections.clear();
  const auto& algorithm = find_algorithm(Collective::allreduce, "ring");
  for (const double bytes : {1e3, 1e5}) {
    const Question question{.collective = Collective::allreduce, .ranks = 2, .bytes = bytes};
    const auto answer = predict(algorithm, question, network);
    const auto without = predict(algorithm, question, plain);
    const double factor = ring(network, 2, bytes);
    EXPECT_EQ(answer.correction, factor);
    EXPECT_NEAR(static_cast<double>(answer.time), factor * static_cast<double>(without.time), 1);
    EXPECT_NEAR(answer.low, static_cast<double>(answer.time) / 2, 1);
    EXPECT_NEAR(answer.high, static_cast<double>(answer.time) * 2, 1);
    EXPECT_NEAR(without.low, static_cast<double>(without.time) / 4, 1);
    EXPECT_NEAR(answer.alpha, without.alpha, 1e-12);  // shares stay
    EXPECT_GE(answer.ratio_to_bound(), 1);            // measured below a bound: it is none
    const Place place{.size = 2, .node_of = {}};
    const Surroundings around{.network = network, .cores = 2},
        without_around{.network = plain, .cores = 2};
    EXPECT_NEAR(call_ps(algorithm, place, bytes, around),
                factor * call_ps(algorithm, place, bytes, without_around), 1);
  }
}

TEST(Correction, of_several_measurements_is_the_middle_one) {
  const std::vector<MeasuredRatio> ratios{{Collective::allreduce, "ring", 64, 9},
                                          {Collective::allreduce, "ring", 8, 1.5},
                                          {Collective::allreduce, "ring", 64, 1},
                                          {Collective::allreduce, "ring", 64, 1.1}};
  const auto all = corrections_of(ratios);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().points, (std::vector<Correction::Point>{{8, 1.5}, {64, 1.1}}));
}

// A size is corrected by the others, so that what only it has remains.
TEST(Correction, left_out_sizes_tell_how_far_others_are_off) {
  std::vector<MeasuredRatio> ratios;
  for (const double bytes : {10.0, 100.0, 1000.0})
    ratios.push_back({Collective::alltoall, "linear", bytes, bytes == 100 ? 6.0 : 2.0});
  const auto deviations = left_out_deviations(ratios);
  ASSERT_EQ(deviations.size(), 3U);
  EXPECT_NEAR(deviations[0], 2.0 / 6, 1e-12);  // 10 by what 100 says
  EXPECT_NEAR(deviations[1], 3, 1e-12);        // 100 by what 10 and 1000 say
}

TEST(Correction, of_timings_brings_predictions_to_them) {
  auto network = measured_with_two();
  network.copy = network.reduce = Curve(1e5, 40);
  network.corrections.clear();
  std::vector<Timing> timings;
  for (const auto collective : {Collective::allreduce, Collective::allgather,
                                Collective::reduce_scatter, Collective::alltoall})
    for (const double bytes : {800.0, 80e3})
      timings.push_back({{collective, "linear", bytes}, 5e7});
  network.corrections = corrections_of(compare(network, 2, timings));
  for (const auto& ratio : compare(network, 2, timings)) EXPECT_NEAR(ratio.factor, 1, 1e-9);
  for (const auto& [what, ps, noise] : timings) {
    const Question question{.collective = what.collective, .ranks = 2, .bytes = what.bytes};
    const auto& algorithm = find_algorithm(what.collective, what.algorithm);
    EXPECT_NEAR(static_cast<double>(predict(algorithm, question, network).time), ps, 1)
        << name(what.collective);
  }
}

TEST(Correction, is_not_for_ranks_of_several_nodes) {
  const auto network = measured_with_two();
  auto plain = network;
  plain.corrections.clear();
  const std::vector<int> nodes{0, 1};
  const Place place{.size = 2, .node_of = nodes};
  const auto& algorithm = find_algorithm(Collective::allreduce, "ring");
  EXPECT_EQ(call_ps(algorithm, place, 1e3, {.network = network, .cores = 2}),
            call_ps(algorithm, place, 1e3, {.network = plain, .cores = 2}));
  const Question question{
      .collective = Collective::allreduce, .ranks = 2, .bytes = 1e3, .node_of = nodes};
  const auto answer = predict(algorithm, question, network);
  EXPECT_EQ(answer.correction, 1);
  EXPECT_FALSE(std::ranges::count(answer.no_effect, "nodes")) << "without them it is corrected";
  const std::vector<int> one_node{3, 3};
  const Question alike{
      .collective = Collective::allreduce, .ranks = 2, .bytes = 1e3, .node_of = one_node};
  EXPECT_EQ(predict(algorithm, alike, network).correction, ring(network, 2, 1e3));
  EXPECT_TRUE(std::ranges::count(predict(algorithm, alike, network).no_effect, "nodes"));
}

TEST(Correction, goes_through_the_file) {
  const auto network = measured_with_two();
  const auto text = to_toml(network);
  const auto again = parse_network(text, "net.toml");
  EXPECT_EQ(again.corrections, network.corrections) << text;
  EXPECT_EQ(again.corrected_error, network.corrected_error);
  EXPECT_EQ(again.error, network.error);
}

TEST(Correction, of_a_file_that_cannot_be_is_refused_with_its_line) {
  const std::string head =
      "format = \"sinew-net\"\nversion = 1\n[link]\none_way = [ { gbytes_per_s = 1 } ]\n"
      "[[measured]]\n";
  const auto refusal = [&](const std::string& rest) -> std::string {
    try {
      parse_network(head + rest, "net.toml");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto has = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  const std::string ring = "collective = \"allreduce\"\nalgorithm = \"ring\"\n";
  EXPECT_TRUE(has(refusal("collective = \"allreduce\"\nalgorithm = \"rin\"\n"), "net.toml:7"));
  EXPECT_TRUE(has(refusal("collective = \"sum\"\nalgorithm = \"ring\"\n"), "sum"));
  EXPECT_TRUE(has(refusal(ring), "factors"));
  EXPECT_TRUE(has(refusal(ring + "factors = [ { bytes = 8, factor = 0 } ]\n"), "more than 0"));
  EXPECT_TRUE(has(refusal(ring + "factors = [ { bytes = 8 } ]\n"), "lacks factor"));
  EXPECT_TRUE(
      has(refusal(ring + "factors = [ { bytes = 8, factor = 1 }, { bytes = 8, factor = 2 } ]\n"),
          "must grow"));
  EXPECT_TRUE(has(refusal(ring + "factors = [ { bytes = 8, factor = 1, us = 3 } ]\n"), "us"));
  const std::string right = ring + "factors = [ { bytes = 8, factor = 1 } ]\n";
  EXPECT_EQ(refusal(right), "");
  EXPECT_TRUE(has(refusal(right + "[[measured]]\n" + right), "measured already"));
}

}  // namespace
}  // namespace sinew
