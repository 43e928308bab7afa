// GOAL export: the text runs to its end in any order, and carries the bytes of the schedule.
#include "schedule/goal.hpp"

#include <gtest/gtest.h>
#include <sinew/error.hpp>

#include <map>
#include <set>
#include <sstream>

#include "support/worlds.hpp"

namespace sinew {
namespace {

struct Node {
  std::string kind;
  std::uint64_t amount = 0;  // bytes, or nanoseconds
  int peer = -1;
  std::uint64_t tag = 0;
  std::vector<int> after;
};
using Ranks = std::vector<std::map<int, Node>>;

int label_of(const std::string& word) { return std::stoi(word.substr(1)); }

// A reader of the few statements we write, independent of the writer.
Ranks read(const std::string& goal) {
  std::istringstream text(goal);
  std::string word;
  std::size_t count = 0;
  text >> word >> count;
  EXPECT_EQ(word, "num_ranks");
  Ranks ranks(count);
  for (std::size_t rank = 0; rank < count; ++rank) {
    std::size_t number = 0;
    text >> word >> number >> word;
    EXPECT_EQ(number, rank);
    EXPECT_EQ(word, "{");
    while (text >> word && word != "}") {
      const int label = label_of(word);
      if (word.back() != ':') {
        std::string other;
        text >> word >> other;
        EXPECT_EQ(word, "requires");
        EXPECT_TRUE(ranks[rank].contains(label_of(other)));
        ranks[rank].at(label).after.push_back(label_of(other));
        continue;
      }
      auto& node = ranks[rank][label];
      text >> node.kind >> node.amount;
      if (node.kind == "calc") continue;
      std::string unit, direction, tag;
      text >> unit >> direction >> node.peer >> tag >> node.tag;
      EXPECT_EQ(unit, "b");
      EXPECT_EQ(direction, node.kind == "send" ? "to" : "from");
    }
  }
  return ranks;
}

// Runs it with sends that wait for their receive: the strictest reading. Returns what never ran.
int stuck(const Ranks& ranks) {
  using Key = std::tuple<int, int, std::uint64_t>;
  std::vector<std::set<int>> done(ranks.size());
  std::map<Key, std::pair<int, std::uint64_t>> sends, recvs;  // posted: label, bytes
  const auto post = [&](int rank, int label, const Node& node) {
    if (node.kind == "calc") return done[static_cast<std::size_t>(rank)].insert(label).second;
    const bool is_send = node.kind == "send";
    const Key key = is_send ? Key{rank, node.peer, node.tag} : Key{node.peer, rank, node.tag};
    auto& mine = is_send ? sends : recvs;
    EXPECT_TRUE(!mine.contains(key) || mine[key].first == label) << "a tag used twice";
    mine[key] = {label, node.amount};
    if (!sends.contains(key) || !recvs.contains(key)) return false;
    EXPECT_EQ(sends[key].second, recvs[key].second);
    done[static_cast<std::size_t>(std::get<0>(key))].insert(sends[key].first);
    return done[static_cast<std::size_t>(std::get<1>(key))].insert(recvs[key].first).second;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      for (const auto& [label, node] : ranks[rank]) {
        if (done[rank].contains(label)) continue;
        bool ready = true;
        for (const int before : node.after) ready &= done[rank].contains(before);
        if (ready) moved |= post(static_cast<int>(rank), label, node);
      }
  }
  int left = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    left += static_cast<int>(ranks[rank].size() - done[rank].size());
  return left;
}

std::uint64_t sent_bytes(const Ranks& ranks) {
  std::uint64_t total = 0;
  for (const auto& rank : ranks)
    for (const auto& [label, node] : rank)
      if (node.kind == "send") total += node.amount;
  return total;
}

TEST(Goal, every_registered_schedule_runs_to_its_end) {
  for (const auto& algorithm : algorithms())
    for (const int size : {1, 2, 3, 4, 7})
      for (const auto& setting : settings(algorithm, size))
        EXPECT_EQ(stuck(read(to_goal(setting.world(), 1003))), 0) << to_string(setting);
}

TEST(Goal, carries_the_bytes_of_the_schedule) {
  const auto ring = make_world(find_algorithm(Collective::allreduce, "ring"), 4);
  EXPECT_EQ(sent_bytes(read(to_goal(ring, 1000))), 6 * 1000U);  // 2 (P-1)/P S from each of P
  const auto flat = make_world(find_algorithm(Collective::allreduce, "flat"), 4);
  EXPECT_EQ(sent_bytes(read(to_goal(flat, 1000))), 12 * 1000U);  // each reads three others
}

TEST(Goal, the_first_chunks_take_the_remainder) {
  const auto goal = to_goal(make_world(find_algorithm(Collective::scatter, "linear"), 4), 10);
  EXPECT_NE(goal.find("send 3b to 1 tag 0"), std::string::npos) << goal;
  EXPECT_NE(goal.find("send 2b to 2 tag 0"), std::string::npos) << goal;
  EXPECT_NE(goal.find("send 2b to 3 tag 0"), std::string::npos) << goal;
}

TEST(Goal, is_what_it_was) {
  const auto world = make_world(find_algorithm(Collective::broadcast, "linear"), 2);
  EXPECT_EQ(to_goal(world, 4096), R"(num_ranks 2

rank 0 {
l1: calc 409
l2: send 4096b to 1 tag 0
l3: calc 0
l3 requires l1
l3 requires l2
}

rank 1 {
l1: recv 4096b from 0 tag 0
l2: calc 0
l2 requires l1
}
)");
}

TEST(Goal, a_receive_without_its_send_is_refused) {
  auto world = make_world(find_algorithm(Collective::broadcast, "linear"), 2);
  world.ranks[0].steps.pop_back();
  EXPECT_THROW(to_goal(world, 8), Error);
  world.ranks.clear();
  EXPECT_THROW(to_goal(world, 8), Error);
}

}  // namespace
}  // namespace sinew
