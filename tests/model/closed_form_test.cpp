// Closed forms of schedules that the library does not have, so that the simulator is held against
// more than its own algorithms. Chunks here only say how much; what they hold is not looked at.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "model/network_file.hpp"
#include "model/simulate.hpp"
#include "schedule/builder.hpp"

namespace sinew {
namespace {

constexpr double kAlpha = 5e6, kBeta = 40, kGamma = 100;  // ps, ps a byte

Network plain() {
  Network network;
  network.one_way = Curve(kAlpha, kBeta);
  network.reduce = Curve(0, kGamma);
  network.eager_bytes = -1;
  return network;
}

double simulated(int size, double bytes, const Network& network,
                 const std::function<Schedule(int)>& schedule) {
  const Workload workload{.size = size, .bytes = bytes, .schedule = schedule};
  return static_cast<double>(simulate(workload, network).end.at);
}

// Every rank has two children, and a segment goes to one after the other.
Schedule binary_tree(int rank, int size, std::uint32_t segments) {
  Builder b("binary_tree", rank, size, segments, segments);
  int offset = -1;  // the round in which it gets its first segment
  std::vector<int> way;
  for (int at = rank; at > 0; at = (at - 1) / 2) way.push_back(at);
  for (const int at : way) offset += at % 2 == 1 ? 1 : 2;
  const auto last = 2 * segments + static_cast<std::uint32_t>(4 * std::bit_width(unsigned(size)));
  for (std::uint32_t round = 0; round < last; ++round, b.next_round()) {
    const auto segment = [&](int begin) {
      const int since = static_cast<int>(round) - begin;
      return since >= 0 && since % 2 == 0 && since / 2 < static_cast<int>(segments);
    };
    if (rank > 0 && segment(offset)) b.recv((rank - 1) / 2, out(0));
    if (2 * rank + 1 < size && segment(offset + 1)) b.send(2 * rank + 1, out(0));
    if (2 * rank + 2 < size && segment(offset + 2)) b.send(2 * rank + 2, out(0));
  }
  return b.finish(b.round() + 1);
}

TEST(ClosedForm, a_pipelined_binary_tree) {
  for (const int depth : {1, 2, 3, 4, 5})
    for (const std::uint32_t segments : {1U, 2U, 7U, 40U}) {
      const int size = (2 << depth) - 1;
      const double bytes = 280'000;
      const auto time = simulated(size, bytes, plain(),
                                  [&](int rank) { return binary_tree(rank, size, segments); });
      EXPECT_NEAR(time / (2 * (depth + segments - 1) * (kAlpha + kBeta * bytes / segments)), 1,
                  1e-12)
          << depth << ' ' << segments;
    }
}

// One block with a neighbour, then two at a time with the one and the other by turns.
Schedule neighbour_exchange(int rank, int size) {
  const auto chunks = static_cast<std::uint32_t>(size);
  Builder b("neighbour_exchange", rank, size, 1, chunks);
  const int up = (rank + 1) % size, down = (rank + size - 1) % size;
  for (int round = 0; round < size / 2; ++round, b.next_round()) {
    const int peer = (round % 2 == 0) == (rank % 2 == 0) ? up : down;
    const std::uint32_t count = round == 0 ? 1 : 2;
    b.send(peer, out(0, count));
    b.recv(peer, out(chunks - count, count));
  }
  return b.finish(b.round() + 1);
}

TEST(ClosedForm, neighbour_exchange) {
  for (int size = 2; size <= 64; size += 2) {
    const double bytes = 1000.0 * size;
    const auto time =
        simulated(size, bytes, plain(), [&](int rank) { return neighbour_exchange(rank, size); });
    EXPECT_NEAR(time / (size / 2 * kAlpha + (size - 1) * 1000 * kBeta), 1, 1e-12) << size;
  }
}

// Surplus ranks give half of the vector to their partner and take its other half, combine, and hand
// their half over: half as much combining as where one takes all.
Schedule half_split(int rank, int size) {
  const int kept = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const int extra = size - kept;
  const auto whole = 2 * static_cast<std::uint32_t>(kept), half = whole / 2;
  Builder b("half_split", rank, size, whole, whole);
  const bool pairs = rank < 2 * extra, leaves = pairs && rank % 2 == 1;
  const int index = pairs ? rank / 2 : rank - extra;
  const auto rank_at = [&](int i) { return i < extra ? 2 * i : i + extra; };
  if (pairs) {
    b.send(rank ^ 1, out(leaves ? 0 : half, half));
    b.recv_reduce(rank ^ 1, out(leaves ? half : 0, half));
  }
  b.next_round();
  if (leaves) b.send(rank ^ 1, out(half, half));
  if (pairs && !leaves) b.recv(rank ^ 1, out(half, half));
  b.next_round();
  for (const bool halving : {true, false})
    for (int i = 0; (1 << i) < kept; ++i, b.next_round()) {
      if (leaves) continue;
      const int step = halving ? kept >> (i + 1) : 1 << i;
      const int peer = rank_at(index ^ step);
      const auto count = 2 * static_cast<std::uint32_t>(step);
      b.send(peer, out(0, count));
      if (halving)
        b.recv_reduce(peer, out(whole - count, count));
      else
        b.recv(peer, out(whole - count, count));
    }
  if (leaves) b.recv(rank ^ 1, out(0, whole));
  if (pairs && !leaves) b.send(rank ^ 1, out(0, whole));
  return b.finish(b.round() + 1);
}

TEST(ClosedForm, halving_and_doubling_with_a_half_split_fold) {
  for (int size = 3; size <= 65; ++size) {
    const auto kept = static_cast<double>(std::bit_floor(static_cast<unsigned>(size)));
    if (kept == size) continue;
    const double bytes = 2 * kept * 1000, rounds = std::log2(kept), rest = 1 - 1 / kept;
    const auto time =
        simulated(size, bytes, plain(), [&](int rank) { return half_split(rank, size); });
    const double expected =
        (2 * rounds + 3) * kAlpha + (2 * rest + 2) * bytes * kBeta + (rest + 0.5) * bytes * kGamma;
    EXPECT_NEAR(time / expected, 1, 1e-12) << size;
  }
}

struct Machine2 {
  int node, nodes;  // ranks of a node, and nodes
};

// Rings inside nodes, then rings between the ranks of equal place, then rings inside nodes again.
Schedule two_level_rings(int rank, const Machine2& machine) {
  const int g = machine.node, n = machine.nodes, local = rank % g, node = rank / g;
  const auto chunks = static_cast<std::uint32_t>(g * n);
  Builder b("two_level_rings", rank, g * n, chunks, chunks);
  const auto part = [&](int i) {
    return out(static_cast<std::uint32_t>((i + 2 * g) % g * n), static_cast<std::uint32_t>(n));
  };
  const int right = node * g + (local + 1) % g, left = node * g + (local + g - 1) % g;
  for (int k = 0; k + 1 < g; ++k, b.next_round()) {
    b.send(right, part(local - k));
    b.recv_reduce(left, part(local - k - 1));
  }
  const int next = (node + 1) % n * g + local, previous = (node + n - 1) % n * g + local;
  const auto piece = [&](int i) {
    return out(static_cast<std::uint32_t>((local + 1) % g * n + (i + 2 * n) % n));
  };
  for (int k = 0; k < 2 * (n - 1); ++k, b.next_round()) {
    b.send(next, piece(node - k));
    if (k < n - 1)
      b.recv_reduce(previous, piece(node - k - 1));
    else
      b.recv(previous, piece(node - k - 1));
  }
  for (int k = 0; k + 1 < g; ++k, b.next_round()) {
    b.send(right, part(local + 1 - k));
    b.recv(left, part(local - k));
  }
  return b.finish(b.round() + 1);
}

Network two_levels(const Machine2& machine, int nics) {
  auto network = plain();
  network.one_way = Curve(2e6, 20);
  network.topology.links = {{.name = "nic", .one_way = Curve(kAlpha, kBeta)}};
  network.topology.levels = {
      {.name = "node", .size = machine.node},
      {.name = "cluster", .link = 0, .sharing = Sharing::member, .links = nics}};
  return network;
}

TEST(ClosedForm, rings_in_two_levels_with_their_own_and_with_shared_nics) {
  for (const int g : {2, 3, 4, 8})
    for (const int n : {2, 3, 4, 8})
      for (const bool own : {true, false}) {
        const double bytes = 1000.0 * g * n, share = own ? 1 : g;
        const auto time = simulated(g * n, bytes, two_levels({g, n}, own ? g : 1), [&](int rank) {
          return two_level_rings(rank, {g, n});
        });
        const double near = 2 * (g - 1) * 2e6 + (g - 1.0) / g * bytes * (2 * 20 + kGamma);
        const double far =
            2 * (n - 1) * kAlpha + (n - 1.0) / n * bytes / g * (2 * kBeta * share + kGamma);
        EXPECT_NEAR(time / (near + far), 1, 1e-12) << g << ' ' << n << ' ' << own;
      }
}

// The slow link paces all steps; it is crossed by one message each way, so sharing does not hurt.
TEST(ClosedForm, a_flat_ring_over_two_levels) {
  for (const int g : {2, 4, 8})
    for (const int n : {2, 3, 8})
      for (const int nics : {1, g}) {
        const int p = g * n;
        const double bytes = 1000.0 * p, others = (p - 1.0) / p;
        const auto& ring = find_algorithm(Collective::allreduce, "ring");
        const auto workload = workload_of(ring, {.size = p, .node_of = {}}, bytes);
        const auto time = static_cast<double>(simulate(workload, two_levels({g, n}, nics)).end.at);
        const double expected = 2 * (p - 1) * kAlpha + others * bytes * (2 * kBeta + kGamma);
        EXPECT_NEAR(time / expected, 1, 1e-12) << g << ' ' << n;
      }
}

}  // namespace
}  // namespace sinew
