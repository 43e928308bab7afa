// Binomial tree: the set of ranks that have (or have given) the data doubles in each round.
#include <algorithm>

#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {
namespace {

// Ranks renumbered so that the root is 0.
struct Tree {
  int size, root, depth, me;
  explicit Tree(const Place& at)
      : size(at.size),
        root(at.root),
        depth(log2_ceil(at.size)),
        me(wrap(at.rank - at.root, at.size)) {}
  [[nodiscard]] int rank(int virtual_rank) const { return wrap(virtual_rank + root, size); }
};

// Towards the leaves: in round k, the first 2^k ranks reach the next 2^k.
void spread(Builder& b, const Tree& tree, Chunks root_source, Chunks data) {
  for (int k = 0; k < tree.depth; ++k, b.next_round()) {
    const int reach = 1 << k;
    if (tree.me < reach && tree.me + reach < tree.size)
      b.send(tree.rank(tree.me + reach), tree.me == 0 ? root_source : data);
    if (tree.me >= reach && tree.me < 2 * reach) b.recv(tree.rank(tree.me - reach), data);
  }
}

// Towards the root, the same in reverse.
void collect(Builder& b, const Tree& tree, Chunks sum) {
  for (int k = tree.depth - 1; k >= 0; --k, b.next_round()) {
    const int reach = 1 << k;
    if (tree.me < reach && tree.me + reach < tree.size)
      b.recv_reduce(tree.rank(tree.me + reach), sum);
    if (tree.me >= reach && tree.me < 2 * reach) b.send(tree.rank(tree.me - reach), sum);
  }
}

// The parts of virtual ranks first..first+count-1 as runs of real ranks: one, or two if they wrap.
struct Run {
  int rank, count, offset;
};
std::vector<Run> runs(const Tree& tree, int first, int count) {
  const int rank = tree.rank(first);
  const int before_wrap = std::min(count, tree.size - rank);
  std::vector<Run> result{{rank, before_wrap, 0}};
  if (before_wrap < count) result.push_back({0, count - before_wrap, before_wrap});
  return result;
}

// In gather and scatter, virtual rank v handles the parts of v .. v + 2^k - 1, where 2^k is the
// lowest bit set in v; the root handles all.
int subtree(const Tree& tree, int v) {
  return v == 0 ? tree.size : std::min(v & -v, tree.size - v);
}

// Where virtual rank `me` keeps the part of virtual rank me + offset.
Chunks place(const Tree& tree, const Run& run, int offset, Buf root_buf) {
  if (tree.me == 0) return {root_buf, u32(run.rank), u32(run.count)};
  return scratch(u32(offset + run.offset), u32(run.count));
}

void add_subtree_scratch(Builder& b, const Tree& tree) {
  for (int i = 0; tree.me != 0 && i < subtree(tree, tree.me); ++i)
    b.add_scratch(u32(tree.rank(tree.me + i)), 1);
}

}  // namespace

Schedule broadcast_binomial(const Place& at) {
  const Tree tree(at);
  Builder b("binomial", at.rank, at.size, 1, 1);
  if (tree.me == 0) b.copy(in(0), out(0));
  spread(b, tree, in(0), out(0));
  return b.finish(u32(std::max(1, tree.depth)));
}

Schedule reduce_binomial(const Place& at) {
  const Tree tree(at);
  Builder b("binomial", at.rank, at.size, 1, 1);
  const auto room = scratch(b.add_scratch(0, 1));
  const auto sum = tree.me == 0 ? out(0) : room;
  b.copy(in(0), sum);
  b.next_round();
  collect(b, tree, sum);
  return b.finish(u32(tree.depth + 1));
}

Schedule allreduce_binomial(const Place& at) {
  const Tree tree(at);
  Builder b("binomial", at.rank, at.size, 1, 1);
  b.copy(in(0), out(0));
  b.next_round();
  collect(b, tree, out(0));
  spread(b, tree, out(0), out(0));
  return b.finish(u32(2 * tree.depth + 1));
}

Schedule gather_binomial(const Place& at) {
  const Tree tree(at);
  Builder b("binomial", at.rank, at.size, 1, u32(at.size));
  add_subtree_scratch(b, tree);
  b.copy(in(0), tree.me == 0 ? out(u32(at.rank)) : scratch(0));
  for (int k = 0; k < tree.depth; ++k) {
    b.next_round();
    const int reach = 1 << k;
    if (tree.me % (2 * reach) == 0 && tree.me + reach < tree.size)
      for (const auto& run : runs(tree, tree.me + reach, subtree(tree, tree.me + reach)))
        b.recv(tree.rank(tree.me + reach), place(tree, run, reach, Buf::output));
    if (tree.me % (2 * reach) == reach)
      for (const auto& run : runs(tree, tree.me, subtree(tree, tree.me)))
        b.send(tree.rank(tree.me - reach), place(tree, run, 0, Buf::output));
  }
  return b.finish(u32(tree.depth + 1));
}

Schedule scatter_binomial(const Place& at) {
  const Tree tree(at);
  Builder b("binomial", at.rank, at.size, u32(at.size), 1);
  add_subtree_scratch(b, tree);
  for (int k = tree.depth - 1; k >= 0; --k, b.next_round()) {
    const int reach = 1 << k;
    if (tree.me % (2 * reach) == 0 && tree.me + reach < tree.size)
      for (const auto& run : runs(tree, tree.me + reach, subtree(tree, tree.me + reach)))
        b.send(tree.rank(tree.me + reach), place(tree, run, reach, Buf::input));
    if (tree.me % (2 * reach) == reach)
      for (const auto& run : runs(tree, tree.me, subtree(tree, tree.me)))
        b.recv(tree.rank(tree.me - reach), place(tree, run, 0, Buf::input));
  }
  b.copy(tree.me == 0 ? in(u32(at.rank)) : scratch(0), out(0));
  return b.finish(u32(tree.depth + 1));
}

}  // namespace sinew
