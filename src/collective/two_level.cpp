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

// One leader's data reaches all leaders, by doubling sets as in a binomial tree.
void spread_to_leaders(Builder& b, const Levels& levels, int root, Chunks source, Chunks data) {
  const int count = static_cast<int>(levels.leaders.size());
  const int first = static_cast<int>(std::find(levels.leaders.begin(), levels.leaders.end(), root) -
                                     levels.leaders.begin());
  const int me = wrap(levels.node - first, count);
  const auto leader = [&](int at) {
    return levels.leaders[static_cast<std::size_t>(wrap(at + first, count))];
  };
  for (int reach = 1; reach < count; reach *= 2, b.next_round()) {
    if (!levels.leads) continue;
    if (me < reach && me + reach < count) b.send(leader(me + reach), me == 0 ? source : data);
    if (me >= reach && me < 2 * reach) b.recv(leader(me - reach), data);
  }
}

// The same in reverse, adding on the way.
void collect_from_leaders(Builder& b, const Levels& levels, int root, Chunks sum) {
  const int count = static_cast<int>(levels.leaders.size());
  const int first = static_cast<int>(std::find(levels.leaders.begin(), levels.leaders.end(), root) -
                                     levels.leaders.begin());
  const int me = wrap(levels.node - first, count);
  const auto leader = [&](int at) {
    return levels.leaders[static_cast<std::size_t>(wrap(at + first, count))];
  };
  for (int reach = floor_power_of_two(std::max(1, count - 1)); reach >= 1;
       reach /= 2, b.next_round()) {
    if (!levels.leads) continue;
    if (me < reach && me + reach < count) b.recv_reduce(leader(me + reach), sum);
    if (me >= reach && me < 2 * reach) b.send(leader(me - reach), sum);
  }
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
