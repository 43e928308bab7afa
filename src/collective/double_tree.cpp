// Double binary tree: two pipelined trees carry half of the data each. Who is inside one tree is
// (nearly) a leaf of the other, so both directions of every link are used and depth is logarithmic.
#include <algorithm>

#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {
namespace {

// An in-order binary tree over 0..size-1 with root 0: the parent clears the lowest set bit and sets
// the next one, unless that falls outside.
int parent_of(int node, int size) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < size ? up : node ^ bit;
}

struct Node {
  int parent = -1;
  std::vector<int> children;
  int height = 0;  // longest way down
  int depth = 0;   // way up
};

std::vector<Node> binary_tree(int size) {
  std::vector<Node> nodes(static_cast<std::size_t>(size));
  const auto node = [&](int at) -> Node& { return nodes[static_cast<std::size_t>(at)]; };
  for (int at = 1; at < size; ++at) {
    node(at).parent = parent_of(at, size);
    node(node(at).parent).children.push_back(at);
    int length = 0;
    for (int up = at; up != 0; up = parent_of(up, size)) {
      node(parent_of(up, size)).height = std::max(node(parent_of(up, size)).height, ++length);
      ++node(at).depth;
    }
  }
  return nodes;
}

// Segment j reaches a node of height h from below in rounds 1 + 3(h + j) and the next, one for each
// child, and comes back down three rounds a level. Both ends of a message use the same round, so
// that waiting can never go in circles.
void run_tree(Builder& b, const std::vector<Node>& tree, int position, auto&& rank_at,
              std::uint16_t channel, std::uint32_t segments) {
  const Node& node = tree[static_cast<std::size_t>(position)];
  const int top = tree[0].height;
  const auto base = channel * segments;
  b.at(0, channel);
  b.copy(in(base, segments), out(base, segments));
  for (std::uint32_t j = 0; j < segments; ++j) {
    for (std::size_t c = 0; c < node.children.size(); ++c) {
      b.at(1 + 3 * (u32(node.height) + j) + static_cast<std::uint32_t>(c), channel);
      b.recv_reduce(rank_at(node.children[c]), out(base + j));
    }
    if (node.parent >= 0) {
      const Node& parent = tree[static_cast<std::size_t>(node.parent)];
      const auto place = std::find(parent.children.begin(), parent.children.end(), position);
      b.at(1 + 3 * (u32(parent.height) + j) +
               static_cast<std::uint32_t>(place - parent.children.begin()),
           channel);
      b.send(rank_at(node.parent), out(base + j));
    }
    const auto down = 3 + 3 * (u32(top + node.depth) + j);
    b.at(down - 3, channel);
    if (node.parent >= 0) b.recv(rank_at(node.parent), out(base + j));
    b.at(down, channel);
    for (const int child : node.children) b.send(rank_at(child), out(base + j));
  }
}

}  // namespace

Schedule allreduce_double_tree(const Place& at) {
  const int size = at.size;
  const auto tree = binary_tree(size);
  Builder b("double_tree", at.rank, size, 2 * at.segments, 2 * at.segments);
  const auto same = [](int rank) { return rank; };
  run_tree(b, tree, at.rank, same, 0, at.segments);
  // The second tree: mirrored for an even number of ranks, shifted by one for an odd one.
  const auto mirror = [size](int rank) {
    return size % 2 == 0 ? size - 1 - rank : wrap(rank + 1, size);
  };
  const int position = size % 2 == 0 ? size - 1 - at.rank : wrap(at.rank - 1, size);
  run_tree(b, tree, position, mirror, 1, at.segments);
  int deepest = 0;
  for (const auto& node : tree) deepest = std::max(deepest, node.depth);
  return b.finish(4 + 3 * (u32(tree[0].height + deepest) + at.segments));
}

}  // namespace sinew
