// Drawings: goldens a person has looked at, and what must hold for every world.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
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
  return world_of(
      Collective::allreduce, "ring", size, rounds + 1,
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
  return world_of(
      Collective::allreduce, "recursive_doubling", size, rounds,
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
  return world_of(
      Collective::broadcast, "binomial", size, rounds,
      [=](Builder& b, int rank) {
        for (int d = 1; d < size; d *= 2, b.next_round()) {
          if (rank < d && rank + d < size) b.send(rank + d, out(0));
          if (rank >= d && rank < 2 * d) b.recv(rank - d, out(0));
        }
      },
      {1, 1, 0});
}

World flat(int size) {
  return world_of(
      Collective::allreduce, "flat", size, 2,
      [](Builder& b, int) {
        b.publish(in(0), 0);
        b.next_round();
        b.gather_reduce(in(0), 0, out(0));
      },
      {1, 1, 1});
}

World direct(int size) {
  const auto parts = static_cast<std::uint32_t>(size);
  return world_of(
      Collective::allreduce, "direct", size, 4,
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
  return world_of(
      Collective::allreduce, "two_level", 2 * half, 5,
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
World scatter_linear(int size) {
  const auto parts = static_cast<std::uint32_t>(size);
  return world_of(
      Collective::scatter, "linear", size, 1,
      [=](Builder& b, int rank) {
        if (rank == 0) b.copy(in(0), out(0));
        for (int r = 1; r < size && rank == 0; ++r) b.send(r, in(static_cast<std::uint32_t>(r)));
        if (rank > 0) b.recv(0, out(0));
      },
      {parts, 1, 0});
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

}  // namespace
}  // namespace sinew
int main(){
 using namespace sinew;
 auto w=[&](std::string n,const World&x){ std::ofstream("/tmp/build-draw/o/"+n+".txt")<<draw_text(x); std::ofstream("/tmp/build-draw/o/"+n+".svg")<<draw_svg(x);};
 w("ring4",ring(4)); w("ring8",ring(8)); w("ring64",ring(64)); w("rd8",recursive_doubling(8)); w("binomial8",binomial_broadcast(8)); w("flat4",flat(4)); w("direct4",direct(4)); w("two4",two_level(2)); w("two8",two_level(4)); w("scatter8",scatter_linear(8)); w("chain4",chain_broadcast(4,3,2)); w("one",world_of(Collective::barrier,"x",1,0,[](Builder&,int){},{0,0,0}));
}
