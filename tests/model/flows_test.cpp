// Shared links: fair rates against a naive solver, and times that follow from them.
#include "model/flows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace sinew {
namespace {

using Links = std::vector<std::uint32_t>;

struct Wanted {
  double bytes = 0;
  Picoseconds alone = 0;
  Links links{};
  [[nodiscard]] double own_rate() const { return bytes / static_cast<double>(alone); }
};

// All rates grow together until something is full; whoever cannot grow stops there.
std::vector<double> naive_rates(const std::vector<double>& capacities,
                                const std::vector<Wanted>& flows) {
  std::vector<double> rates(flows.size(), 0);
  std::vector<bool> stopped(flows.size(), false);
  while (std::find(stopped.begin(), stopped.end(), false) != stopped.end()) {
    std::vector<double> used(capacities.size(), 0);
    std::vector<int> growing(capacities.size(), 0);
    for (std::size_t i = 0; i < flows.size(); ++i)
      for (const auto link : flows[i].links)
        used[link] += rates[i], growing[link] += stopped[i] ? 0 : 1;
    double step = 1e300;
    for (std::size_t i = 0; i < flows.size(); ++i)
      if (!stopped[i]) step = std::min(step, flows[i].own_rate() - rates[i]);
    for (std::size_t link = 0; link < capacities.size(); ++link)
      if (growing[link] > 0) step = std::min(step, (capacities[link] - used[link]) / growing[link]);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (stopped[i]) continue;
      rates[i] += step;
      bool full = rates[i] >= flows[i].own_rate() * (1 - 1e-12);
      for (const auto link : flows[i].links)
        full |= used[link] + step * growing[link] >= capacities[link] * (1 - 1e-12);
      stopped[i] = full;
    }
  }
  return rates;
}

Wanted random_flow(std::mt19937& random, std::uint32_t links) {
  Wanted flow;
  flow.bytes = static_cast<double>(1 + random() % 1000);
  flow.alone = static_cast<Picoseconds>(1'000'000 + random() % 5'000'000);
  for (std::uint32_t link = 0; link < links; ++link)
    if (random() % 3 == 0) flow.links.push_back(link);
  if (flow.links.empty()) flow.links.push_back(static_cast<std::uint32_t>(random() % links));
  return flow;
}

TEST(Flows, rates_are_max_min_fair_on_random_graphs) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    std::vector<double> capacities(1 + random() % 6);
    for (auto& capacity : capacities)
      capacity =
          1e-5 * static_cast<double>(1 + random() % 100) / static_cast<double>(1 + random() % 3);
    std::vector<Wanted> wanted(1 + random() % 12);
    Flows flows(capacities);
    std::vector<Flows::Id> ids;
    for (auto& flow : wanted) {
      flow = random_flow(random, static_cast<std::uint32_t>(capacities.size()));
      ids.push_back(flows.start(0, flow.bytes, flow.alone, flow.links));
    }
    const auto rates = naive_rates(capacities, wanted);
    ASSERT_FALSE(flows.advance().empty());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(flows.rate(ids[i]) / rates[i], 1, 1e-9) << seed << ' ' << i;
  }
}

std::map<Flows::Id, Picoseconds> run_all(Flows& flows) {
  std::map<Flows::Id, Picoseconds> ends;
  while (true) {
    const auto& ended = flows.advance();
    if (ended.empty()) return ends;
    for (const auto id : ended) ends[id] = flows.now();
  }
}

TEST(Flows, equal_ones_on_one_link_take_as_often_as_long) {
  for (const int count : {1, 2, 3, 7, 100}) {
    Flows flows({0.025});
    for (int i = 0; i < count; ++i) flows.start(5, 1000, 40'000, Links{0});
    for (const auto& [id, end] : run_all(flows)) EXPECT_EQ(end, 5 + count * 40'000);
  }
}

// One alone, then two at half speed, then one alone again.
TEST(Flows, rates_change_when_others_come_and_go) {
  Flows flows({0.025});
  flows.start(0, 1000, 40'000, Links{0});
  flows.start(10'000, 1000, 40'000, Links{0});
  const auto ends = run_all(flows);
  EXPECT_EQ(ends.at(0), 70'000);
  EXPECT_EQ(ends.at(1), 80'000);
}

TEST(Flows, what_has_room_is_not_slowed_down) {
  Flows flows({0.1, 0.1});
  flows.start(0, 1000, 40'000, Links{0, 1});
  flows.start(0, 1000, 50'000, Links{0});
  flows.start(0, 999, 77'777, Links{1});
  const auto ends = run_all(flows);
  EXPECT_EQ(ends.at(0), 40'000);
  EXPECT_EQ(ends.at(1), 50'000);
  EXPECT_EQ(ends.at(2), 77'777);
}

// Times of a crowd do not depend on the order in which it came through the door.
TEST(Flows, order_of_starting_changes_nothing) {
  std::mt19937 random(7);
  std::vector<double> capacities{2e-4, 1e-4, 3e-4, 2e-4};
  std::vector<Wanted> wanted(200);
  std::vector<Picoseconds> begins;
  for (auto& flow : wanted) {
    flow = random_flow(random, 4);
    begins.push_back(static_cast<Picoseconds>(random() % 20) * 1'000'000);
  }
  std::vector<std::size_t> order(wanted.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<Picoseconds> first;
  for (int round = 0; round < 5; ++round) {
    Flows flows(capacities);
    std::map<Flows::Id, std::size_t> who;
    for (const auto i : order)
      who[flows.start(begins[i], wanted[i].bytes, wanted[i].alone, wanted[i].links)] = i;
    std::vector<Picoseconds> ends(wanted.size());
    for (const auto& [id, end] : run_all(flows)) ends[who.at(id)] = end;
    if (round == 0) first = ends;
    EXPECT_EQ(ends, first);
    std::shuffle(order.begin(), order.end(), random);
  }
}

}  // namespace
}  // namespace sinew
