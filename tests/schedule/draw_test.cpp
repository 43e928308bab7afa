// Drawings: goldens a person has looked at, and what must hold for every world.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sinew/algorithms.hpp>
#include <sinew/draw.hpp>

#include "schedule/builder.hpp"

namespace sinew {
namespace {

using Part = std::function<void(Builder&, int rank)>;

World world_of(Collective collective, std::string_view name, int size, std::uint32_t rounds,
               const Part& part, std::array<std::uint32_t, 3> chunks, int root = 0) {
  World world{.collective = collective, .root = root, .ranks = {}};
  for (int rank = 0; rank < size; ++rank) {
    Builder builder(name, rank, size, chunks[0], chunks[1]);
    builder.board_chunks(chunks[2]);
    part(builder, rank);
    world.ranks.push_back(builder.finish(rounds));
  }
  return world;
}

World ring(int size) {
  const auto parts = static_cast<std::uint32_t>(size);
  const auto rounds = 2 * (parts - 1);
  return world_of(Collective::allreduce, "ring", size, rounds + 1,
                  [=](Builder& b, int rank) {
                    const auto chunk = [=](std::uint32_t back) {
                      return out((static_cast<std::uint32_t>(rank) + 2 * parts - back) % parts);
                    };
                    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
                    b.copy(in(0, parts), out(0, parts));
                    for (std::uint32_t k = 0; k < rounds; ++k) {
                      b.next_round();
                      const bool combine = k + 1 < parts;
                      b.send(right, chunk(k));
                      combine ? b.recv_reduce(left, chunk(k + 1)) : b.recv(left, chunk(k + 1));
                    }
                  },
                  {parts, parts, 0});
}
World recursive_doubling(int size) {
  std::uint32_t rounds = 1;
  for (int d = 1; d < size; d *= 2) rounds += 2;
  return world_of(Collective::allreduce, "recursive_doubling", size, rounds,
                  [=](Builder& b, int rank) {
                    b.add_scratch(0, 1);
                    b.copy(in(0), out(0));
                    for (int d = 1; d < size; d *= 2) {
                      b.next_round();
                      b.send(rank ^ d, out(0));
                      b.recv(rank ^ d, scratch(0));
                      b.next_round();
                      b.reduce(scratch(0), out(0));
                    }
                  },
                  {1, 1, 0});
}

World binomial_broadcast(int size) {
  std::uint32_t rounds = 0;
  for (int d = 1; d < size; d *= 2) ++rounds;
  return world_of(Collective::broadcast, "binomial", size, rounds,
                  [=](Builder& b, int rank) {
                    for (int d = 1; d < size; d *= 2, b.next_round()) {
                      if (rank < d && rank + d < size) b.send(rank + d, out(0));
                      if (rank >= d && rank < 2 * d) b.recv(rank - d, out(0));
                    }
                  },
                  {1, 1, 0});
}

World flat(int size) {
  return world_of(Collective::allreduce, "flat", size, 2,
                  [](Builder& b, int) {
                    b.publish(in(0), 0);
                    b.next_round();
                    b.gather_reduce(in(0), 0, out(0));
                  },
                  {1, 1, 1});
}

World direct(int size) {
  const auto parts = static_cast<std::uint32_t>(size);
  return world_of(Collective::allreduce, "direct", size, 4,
                  [=](Builder& b, int rank) {
                    const auto mine = static_cast<std::uint32_t>(rank);
                    b.publish(in(0, parts), 0);
                    b.next_round();
                    b.gather_reduce(in(mine), mine, out(mine));
                    b.next_round();
                    b.publish(out(mine), parts);
                    b.next_round();
                    for (std::uint32_t r = 0; r < parts; ++r)
                      if (r != mine) b.gather_copy(static_cast<int>(r), parts, out(r));
                  },
                  {parts, parts, parts + 1});
}

// Two nodes of `half` ranks: each sums on its board, the leaders exchange, the boards spread it.
World two_level(int half) {
  return world_of(Collective::allreduce, "two_level", 2 * half, 5,
                  [=](Builder& b, int rank) {
                    const int leader = rank < half ? 0 : half;
                    std::vector<int> node;
                    for (int r = leader; r < leader + half; ++r) node.push_back(r);
                    b.groups({node});
                    b.publish(in(0), 0, 0);
                    b.next_round();
                    if (rank == leader) b.gather_reduce(in(0), 0, out(0), 0);
                    b.next_round();
                    if (rank == leader) {
                      b.send(half - leader, out(0));
                      b.recv_reduce(half - leader, out(0));
                    }
                    b.next_round();
                    if (rank == leader) b.publish(out(0), 1, 0);
                    b.next_round();
                    if (rank != leader) b.gather_copy(leader, 1, out(0), 0);
                  },
                  {1, 1, 2});
}

// A chain in which every rank passes a segment on a round after it came.
World chain_broadcast(int size, std::uint32_t segments, int root) {
  return world_of(
      Collective::broadcast, "chain", size, segments + static_cast<std::uint32_t>(size),
      [=](Builder& b, int rank) {
        const int place = (rank + size - root) % size;
        for (std::uint32_t s = 0; s < segments; ++s) {
          b.at(static_cast<std::uint32_t>(place) + s);
          if (place > 0) b.recv((rank + size - 1) % size, out(s));
          b.at(static_cast<std::uint32_t>(place) + s + 1);
          if (place + 1 < size) b.send((rank + 1) % size, out(s));
        }
      },
      {segments, segments, 0}, root);
}

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) ++found;
  return found;
}

std::size_t count_steps(const World& world, Op op) {
  std::size_t found = 0;
  for (const Schedule& schedule : world.ranks)
    for (const Step& step : schedule.steps) found += step.op == op ? 1 : 0;
  return found;
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

// The first tag that is not closed where it must be, or "".
std::string unbalanced_tag(const std::string& xml) {
  std::vector<std::string> open;
  for (auto at = xml.find('<'); at != xml.npos; at = xml.find('<', at + 1)) {
    const auto end = xml.find('>', at);
    if (end == xml.npos || xml.find('<', at + 1) < end) return xml.substr(at, 40);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    const std::string word =
        tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag[0] == '/' ? 1 : 0));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != word) return tag;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(word);
    }
  }
  return open.empty() ? "" : open.back();
}

// SINEW_UPDATE_GOLDENS=1 rewrites the file; look at it before it is committed.
void expect_golden(const std::string& file, const std::string& drawn) {
  const std::string path = std::string(SINEW_SOURCE_DIR) + "/tests/goldens/draw/" + file;
  const char* update = std::getenv("SINEW_UPDATE_GOLDENS");
  if (update != nullptr && std::string_view(update) == "1") std::ofstream(path) << drawn;
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  std::istringstream want(golden.str()), got(drawn);
  std::string a, b;
  for (int line = 1; std::getline(got, b) || want.good(); ++line, b.clear()) {
    std::getline(want, a);
    ASSERT_EQ(a, b) << "tests/goldens/draw/" << file << ":" << line
                    << " differs; SINEW_UPDATE_GOLDENS=1 rewrites it";
    a.clear();
  }
}

struct Golden {
  const char* name;
  World world;
};

std::vector<Golden> goldens() {
  return {{"ring_4", ring(4)},
          {"ring_64", ring(64)},
          {"recursive_doubling_8", recursive_doubling(8)},
          {"binomial_broadcast_8", binomial_broadcast(8)},
          {"flat_4", flat(4)},
          {"direct_4", direct(4)},
          {"two_level_4", two_level(2)},
          {"chain_from_2", chain_broadcast(4, 3, 2)}};
}

// Every algorithm there is, on one node and (where it cares) on two.
std::vector<World> registered(int size) {
  std::vector<World> worlds;
  for (const Algorithm& algorithm : algorithms()) {
    for (const int nodes : {1, 2}) {
      std::vector<int> node_of;
      for (int rank = 0; rank < size; ++rank) node_of.push_back(rank * nodes / size);
      const Place place{.rank = 0, .size = size, .root = 0, .segments = 2, .node_of = node_of};
      if (algorithm.fits(place, kOneHost))
        worlds.push_back(make_world(algorithm, size, 0, 2, node_of));
    }
  }
  return worlds;
}

TEST(Draw, text_is_as_last_looked_at) {
  for (const Golden& golden : goldens())
    expect_golden(std::string(golden.name) + ".txt", draw_text(golden.world));
}

TEST(Draw, svg_is_as_last_looked_at) {
  for (const Golden& golden : goldens())
    expect_golden(std::string(golden.name) + ".svg", draw_svg(golden.world));
}

TEST(Draw, every_message_appears_exactly_once) {
  for (const int size : {2, 4, 5, 8}) {
    for (const World& world : registered(size)) {
      SCOPED_TRACE(fmt::format("{} {} {}", name(world.collective), world.ranks[0].name, size));
      EXPECT_EQ(count(draw_svg(world), "<title>rank "), count_steps(world, Op::send));
      // Wide enough for a table, in which no two ranks share a cell; the legend repeats one send.
      const std::size_t sends = count_steps(world, Op::send);
      EXPECT_EQ(count(draw_text(world, 10'000), " -> r"), sends + (sends > 0 ? 1 : 0));
    }
  }
}

TEST(Draw, svg_is_well_formed) {
  for (const int size : {1, 3, 8, 64})
    for (const World& world : registered(size)) EXPECT_EQ(unbalanced_tag(draw_svg(world)), "");
  World odd = flat(2);
  for (Schedule& schedule : odd.ranks) schedule.name = "<a & \"b\">\n";
  EXPECT_EQ(unbalanced_tag(draw_svg(odd)), "");
  EXPECT_NE(unbalanced_tag("<svg><g></svg>"), "");
}

TEST(Draw, text_fits_the_terminal) {
  for (const int size : {1, 4, 8, 64})
    for (const World& world : registered(size))
      EXPECT_LE(longest_line(draw_text(world)), 80U) << draw_text(world);
}

TEST(Draw, ring_of_four_is_a_table_of_eighty_columns) {
  const std::string text = draw_text(ring(4), 80);
  EXPECT_LE(longest_line(text), 80U);
  EXPECT_NE(text.find("round | rank 0"), text.npos);
}

TEST(Draw, what_is_left_out_is_said) {
  for (const std::string& drawing : {draw_text(ring(64)), draw_svg(ring(64))})
    EXPECT_NE(drawing.find("not drawn: ranks 8-63 and rounds 8-126"), drawing.npos);
  EXPECT_EQ(draw_text(ring(8)).find("not drawn"), std::string::npos);
}

TEST(Draw, nothing_to_do_is_said) {
  const World alone = world_of(Collective::barrier, "flat", 1, 0, [](Builder&, int) {}, {0, 0, 0});
  for (const std::string& drawing : {draw_text(alone), draw_svg(alone)})
    EXPECT_NE(drawing.find("no rank has anything to do"), drawing.npos);
  EXPECT_FALSE(draw_text(World{}).empty());
  EXPECT_EQ(unbalanced_tag(draw_svg(World{})), "");
}

TEST(Draw, a_send_without_its_receive_shows) {
  World broken = binomial_broadcast(4);
  broken.ranks[1].steps.erase(broken.ranks[1].steps.begin());
  EXPECT_NE(draw_svg(broken).find("rank 0 to rank 1: o0, never received"), std::string::npos);
  broken.ranks[0].steps[0].peer = 1'000'000;
  EXPECT_EQ(unbalanced_tag(draw_svg(broken)), "");
}

TEST(Draw, channels_and_groups_are_named) {
  World world = two_level(2);
  EXPECT_NE(draw_text(world).find("g1              ranks 2-3"), std::string::npos);
  EXPECT_NE(draw_svg(world).find("g1: 2-3"), std::string::npos);
  for (Schedule& schedule : world.ranks)
    for (Step& step : schedule.steps) step.channel = 3;
  EXPECT_NE(draw_text(world).find("o0 -> r2 ~3"), std::string::npos);
  EXPECT_NE(draw_svg(world).find(">o0 ~3<"), std::string::npos);
}

}  // namespace
}  // namespace sinew
