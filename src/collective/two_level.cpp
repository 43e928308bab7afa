// Two levels: shared memory inside a node, messages between one leader of each node. A "node" is
// whatever domain the place's node map names: a host, a NUMA domain, an L3 cache.
#include <algorithm>

#include "collective/doubling.hpp"
#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {
namespace {

struct Levels {
  std::vector<std::vector<int>> nodes;
  std::vector<int> leaders;
  int node = 0;  // of this rank
  bool leads = false;

  // The root, where there is one, leads its node.
  Levels(const Place& at, int root) : nodes(nodes_of(at)) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& ranks = nodes[i];
      const bool has_root = std::binary_search(ranks.begin(), ranks.end(), root);
      leaders.push_back(has_root ? root : ranks.front());
      if (std::binary_search(ranks.begin(), ranks.end(), at.rank)) node = static_cast<int>(i);
    }
    leads = leaders[static_cast<std::size_t>(node)] == at.rank;
  }
  [[nodiscard]] int leader() const { return leaders[static_cast<std::size_t>(node)]; }
};

// The leaders as a binomial tree under the root's, a round for each doubling: `outward` away from
// the root, else towards it. meet(peer, further): whom this leader meets, and whether that one is
// further from the root.
template <class Meet>
void walk_leaders(Builder& b, const Levels& levels, int root, bool outward, Meet meet) {
  const auto& leaders = levels.leaders;
  const int count = static_cast<int>(leaders.size());
  const int first =
      static_cast<int>(std::find(leaders.begin(), leaders.end(), root) - leaders.begin());
  const int me = wrap(levels.node - first, count);
  const auto leader = [&](int at) {
    return leaders[static_cast<std::size_t>(wrap(at + first, count))];
  };
  for (int round = 0; round < log2_ceil(count); ++round, b.next_round()) {
    const int reach = 1 << (outward ? round : log2_ceil(count) - 1 - round);
    if (!levels.leads) continue;
    if (me < reach && me + reach < count) meet(leader(me + reach), true);
    if (me >= reach && me < 2 * reach) meet(leader(me - reach), false);
  }
}

// One leader's data reaches all leaders.
void spread_to_leaders(Builder& b, const Levels& levels, int root, Chunks source, Chunks data) {
  const bool is_root = levels.leads && levels.leader() == root;
  walk_leaders(b, levels, root, true, [&](int peer, bool further) {
    further ? b.send(peer, is_root ? source : data) : b.recv(peer, data);
  });
}

// The same in reverse, adding on the way.
void collect_from_leaders(Builder& b, const Levels& levels, int root, Chunks sum) {
  walk_leaders(b, levels, root, false, [&](int peer, bool further) {
    further ? b.recv_reduce(peer, sum) : b.send(peer, sum);
  });
}

// Members publish, the leader combines them into `sum`.
void combine_in_node(Builder& b, const Levels& levels, Chunks sum) {
  if (!levels.leads) b.publish(in(0), 0, levels.node);
  b.next_round();
  if (levels.leads) b.gather_reduce(in(0), 0, sum, levels.node);
  b.next_round();
}

// The leader publishes, members copy.
void share_in_node(Builder& b, const Levels& levels, std::uint32_t board, Chunks source) {
  if (levels.leads) b.publish(source, board, levels.node);
  b.next_round();
  if (!levels.leads) b.gather_copy(levels.leader(), board, out(0), levels.node);
  b.next_round();
}

}  // namespace

Schedule allreduce_two_level(const Place& at) {
  const Levels levels(at, -1);
  Builder b("two_level", at.rank, at.size, 1, 1);
  b.board_chunks(2);
  b.groups(levels.nodes);
  const auto other = scratch(b.add_scratch(0, 1));
  combine_in_node(b, levels, out(0));
  if (levels.leads) {
    double_among(b, levels.leaders, levels.node, out(0), other);
  } else {
    Builder skipped("", 0, 1, 1, 1);  // members wait as many rounds as the leaders take
    double_among(skipped, levels.leaders, 0, out(0), other);
    b.at(b.round() + skipped.round());
  }
  share_in_node(b, levels, 1, out(0));
  return b.finish(b.round());
}

Schedule broadcast_two_level(const Place& at) {
  const Levels levels(at, at.root);
  Builder b("two_level", at.rank, at.size, 1, 1);
  b.board_chunks(1);
  b.groups(levels.nodes);
  const bool is_root = at.rank == at.root;
  if (is_root) b.copy(in(0), out(0));
  spread_to_leaders(b, levels, at.root, in(0), out(0));
  share_in_node(b, levels, 0, is_root ? in(0) : out(0));
  return b.finish(b.round());
}

Schedule reduce_two_level(const Place& at) {
  const Levels levels(at, at.root);
  Builder b("two_level", at.rank, at.size, 1, 1);
  b.board_chunks(1);
  b.groups(levels.nodes);
  const auto room = scratch(b.add_scratch(0, 1));
  const auto sum = at.rank == at.root ? out(0) : room;
  combine_in_node(b, levels, sum);
  collect_from_leaders(b, levels, at.root, sum);
  return b.finish(b.round());
}

}  // namespace sinew
