// Compressed allreduces: simulated phases against the formulas of the literature.
#include "model/scheme_phases.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include <sinew/error.hpp>
#include "model/cost_book.hpp"
#include "model/network_file.hpp"
#include "model/ragged.hpp"

namespace sinew {
namespace {

constexpr double kElements = 27569568;

Sparsity at_density(double density) { return {.elements = kElements, .density = density}; }

double closed_ms(std::string_view scheme, double ranks, bool high) {
  const auto form = closed_form(scheme, ranks, at_density(0.02), 5e-6, 1 / 25e9);
  return 1e3 * (high ? form.high_s : form.low_s);
}

// facts: 25 GB/s, 5 us, k = 2 %, milliseconds.
TEST(ClosedForms, are_those_of_the_table) {
  const auto near = [](double value, double expected) {
    EXPECT_NEAR(value, expected, 0.012 * expected + 0.005);
  };
  near(closed_ms("dense", 8, true), 7.79);
  near(closed_ms("dense", 8, false), 7.75);
  near(closed_ms("dense", 1024, true), 19.0);
  near(closed_ms("topka", 8, false), 1.25);
  near(closed_ms("topka", 64, false), 11.2);
  near(closed_ms("gtopk", 32, false), 1.8);
  near(closed_ms("gtopk", 1024, false), 3.6);
  near(closed_ms("topkdsa", 8, false), 0.38);
  near(closed_ms("topkdsa", 8, true), 4.1);
  near(closed_ms("oktopk", 8, false), 0.26);
  near(closed_ms("oktopk", 8, true), 0.57);
  near(closed_ms("oktopk", 10000, true), 101);
}

double simulated_ms(CostBook& book, std::string_view scheme, int ranks, double density) {
  return static_cast<double>(
             book.sum(phases_of(scheme, ranks, at_density(density)), ranks).end.at) /
         1e9;
}

TEST(Schemes, simulated_steps_lie_within_the_formulas) {
  CostBook book(parse_network_line("alpha=5us,bw=25GB/s"));
  for (const int ranks : {2, 8, 32, 64}) {
    const double alpha = 5e-3, rounds = std::ceil(std::log2(ranks));
    // Exchanges of counts and thresholds that the formulas leave out: at most so many messages.
    const double control = (3 * rounds + 2 * rounds) * alpha + 0.01;
    for (const std::string_view scheme : {"topka", "gtopk", "topkdsa", "oktopk"}) {
      const double time = simulated_ms(book, scheme, ranks, 0.02);
      const double high = closed_ms(scheme, ranks, true);
      EXPECT_LE(time, high + control) << scheme << ' ' << ranks;
      // Split and gather: k items out to owners and k items back is the least there is.
      const double k = std::floor(kElements * 0.02);
      EXPECT_GE(time, 2 * k * 8 * (ranks - 1) / ranks / 25e6 + rounds * alpha) << scheme << ranks;
    }
  }
}

TEST(Schemes, an_exchange_with_owners_sends_k_items_out_and_k_back) {
  CostBook book(parse_network_line("alpha=0us,bw=1GB/s"));
  for (const int ranks : {2, 4, 8, 16}) {
    const auto gradient = at_density(0.01);
    const double k = gradient.items();
    double split = 0, gather = 0;
    for (const auto& phase : phases_of("oktopk", ranks, gradient)) {
      const auto& cost = book.best(phase.collective, ranks, phase.bytes);
      if (phase.what == "split") split = cost.bytes_per_rank;
      if (phase.what == "gather") gather = cost.bytes_per_rank;
    }
    EXPECT_NEAR(split, 8 * k * (ranks - 1) / ranks, 1);
    EXPECT_NEAR(gather, 8 * k * (ranks - 1) / ranks, 1);
  }
}

TEST(Schemes, more_workers_fill_the_union_until_it_is_dense) {
  const auto bytes = [](int ranks, double fill) {
    auto gradient = at_density(0.01);
    gradient.fill = fill;
    return phases_of("topkdsa", ranks, gradient).back().bytes;
  };
  EXPECT_NEAR(bytes(2, 0), 8 * kElements * (1 - 0.99 * 0.99), 100);
  EXPECT_NEAR(bytes(8, 1), 8 * std::floor(kElements * 0.01), 1);
  EXPECT_EQ(bytes(1000, 0), 4 * kElements);
}

TEST(Schemes, unknown_ones_are_refused) {
  EXPECT_THROW(phases_of("zip", 4, at_density(0.1)), Error);
  EXPECT_TRUE(phases_of("oktopk", 1, at_density(0.1)).empty());
}

TEST(Ragged, equal_parts_are_the_registrys_algorithms) {
  const auto network = parse_network_line("alpha=3us,bw=2GB/s");
  for (const int ranks : {2, 3, 8, 13}) {
    const double bytes = 1 << 20;
    const auto parts = skewed_parts(ranks, bytes, 1);
    const Question question{Collective::alltoall, ranks, bytes};
    const auto pairwise =
        predict(find_algorithm(Collective::alltoall, "pairwise"), question, network);
    EXPECT_NEAR(static_cast<double>(simulate(ragged_alltoall(parts), network).end.at),
                static_cast<double>(pairwise.time), 1e-5 * static_cast<double>(pairwise.time));
    const auto bruck = predict(find_algorithm(Collective::allgather, "bruck"),
                               {Collective::allgather, ranks, bytes}, network);
    EXPECT_NEAR(static_cast<double>(simulate(ragged_allgather(parts), network).end.at),
                static_cast<double>(bruck.time), 1e-5 * static_cast<double>(bruck.time));
  }
}

TEST(Ragged, the_rank_that_gets_most_decides) {
  const auto network = parse_network_line("alpha=0us,bw=1GB/s");
  const int ranks = 8;
  const double bytes = 8e6;  // a million for each
  const auto parts = skewed_parts(ranks, bytes, 3);
  EXPECT_EQ(parts.front(), 3e6);
  // Seven messages of three million bytes reach rank 0.
  EXPECT_NEAR(static_cast<double>(simulate(ragged_alltoall(parts), network).end.at), 7 * 3e6 * 1e3,
              1e6);
  CostBook book(network);
  EXPECT_GT(book.best(Collective::alltoall, ranks, bytes, 3).end.at,
            2 * book.best(Collective::alltoall, ranks, bytes).end.at);
}

}  // namespace
}  // namespace sinew
