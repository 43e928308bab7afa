// The one list of algorithms. To add one: a file with its generator, and a row here.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "collective/generators.hpp"
#include "collective/places.hpp"

namespace sinew {
namespace {

bool anywhere(const Place&, Capabilities) { return true; }
bool power_of_two(const Place& at, Capabilities) { return is_power_of_two(at.size); }
bool one_node(const Place& at) {
  return std::adjacent_find(at.node_of.begin(), at.node_of.end(), std::not_equal_to<>()) ==
         at.node_of.end();
}
bool on_one_board(const Place& at, Capabilities can) {
  return can.board && (can.across_nodes || one_node(at));
}
bool where_ranks_pull(const Place& at, Capabilities can) {
  return can.pull && on_one_board(at, can);
}
bool in_shared_buffers(const Place& at, Capabilities can) {
  return can.shared_buffers && on_one_board(at, can);
}
bool several_nodes(const Place& at, Capabilities can) { return can.board && !one_node(at); }
bool equal_nodes(const Place& at, Capabilities) {
  const auto nodes = nodes_of(at);
  return nodes.size() > 1 && nodes.front().size() > 1 &&
         std::all_of(nodes.begin(), nodes.end(),
                     [&](const auto& node) { return node.size() == nodes.front().size(); });
}

using enum Collective;
constexpr std::array kAlgorithms = std::to_array<Algorithm>({
    {allreduce, "ring", "reduce-scatter, then allgather, between neighbours", allreduce_ring,
     anywhere},
    {allreduce, "recursive_doubling", "everything to a partner twice as far each round",
     allreduce_recursive_doubling, anywhere},
    {allreduce, "halving_doubling", "recursive halving, then doubling (Rabenseifner)",
     allreduce_halving_doubling, anywhere},
    {allreduce, "binomial", "up a binomial tree and down again", allreduce_binomial, anywhere},
    {allreduce,
     "chain",
     "along a line of ranks and back, in segments",
     allreduce_chain,
     anywhere,
     {.pipelines = true, .rank_order = true}},
    {allreduce,
     "double_tree",
     "two complementary binary trees, in segments",
     allreduce_double_tree,
     anywhere,
     {.pipelines = true}},
    {allreduce,
     "linear",
     "all to rank 0 in order, and back",
     allreduce_linear,
     anywhere,
     {.rank_order = true}},
    {allreduce,
     "flat",
     "everyone reads everyone's shared slot",
     allreduce_flat,
     on_one_board,
     {.rank_order = true}},
    {allreduce,
     "direct",
     "each reduces one part out of shared slots",
     allreduce_direct,
     on_one_board,
     {.rank_order = true}},
    {allreduce,
     "pull",
     "each reduces one part out of others' memory",
     allreduce_pull,
     where_ranks_pull,
     {.rank_order = true}},
    {allreduce,
     "shared",
     "each reduces one part inside shared buffers",
     allreduce_shared,
     in_shared_buffers,
     {.rank_order = true}},
    {allreduce, "two_level", "within nodes, then between their leaders", allreduce_two_level,
     several_nodes},
    {allreduce, "grid", "each part within nodes, then between them", allreduce_grid, equal_nodes},
    {reduce, "binomial", "up a binomial tree", reduce_binomial, anywhere},
    {reduce,
     "chain",
     "along a line of ranks, in segments",
     reduce_chain,
     anywhere,
     {.pipelines = true, .rank_order = true}},
    {reduce,
     "linear",
     "all to the root, in rank order",
     reduce_linear,
     anywhere,
     {.rank_order = true}},
    {reduce,
     "flat",
     "the root reads everyone's shared slot",
     reduce_flat,
     on_one_board,
     {.rank_order = true}},
    {reduce,
     "direct",
     "each reduces one part, the root collects",
     reduce_direct,
     on_one_board,
     {.rank_order = true}},
    {reduce, "two_level", "within nodes, then between their leaders", reduce_two_level,
     several_nodes},
    {broadcast,
     "binomial",
     "down a binomial tree",
     broadcast_binomial,
     anywhere,
     {.rank_order = true}},
    {broadcast,
     "chain",
     "along a line of ranks, in segments",
     broadcast_chain,
     anywhere,
     {.pipelines = true, .rank_order = true}},
    {broadcast,
     "linear",
     "the root sends to each",
     broadcast_linear,
     anywhere,
     {.rank_order = true}},
    {broadcast,
     "direct",
     "everyone reads the root's shared slot",
     broadcast_direct,
     on_one_board,
     {.rank_order = true}},
    {broadcast,
     "pull",
     "everyone reads the root's own memory",
     broadcast_pull,
     where_ranks_pull,
     {.rank_order = true}},
    {broadcast,
     "two_level",
     "to the leaders, then within nodes",
     broadcast_two_level,
     several_nodes,
     {.rank_order = true}},
    {allgather,
     "ring",
     "parts travel round the ring",
     allgather_ring,
     anywhere,
     {.rank_order = true}},
    {allgather,
     "recursive_doubling",
     "twice as many parts each round",
     allgather_recursive_doubling,
     power_of_two,
     {.rank_order = true}},
    {allgather,
     "bruck",
     "like doubling, for any number of ranks",
     allgather_bruck,
     anywhere,
     {.rank_order = true}},
    {allgather,
     "linear",
     "each sends to each at once",
     allgather_linear,
     anywhere,
     {.rank_order = true}},
    {allgather,
     "direct",
     "everyone reads everyone's shared slot",
     allgather_direct,
     on_one_board,
     {.rank_order = true}},
    {allgather,
     "pull",
     "everyone reads everyone's own memory",
     allgather_pull,
     where_ranks_pull,
     {.rank_order = true}},
    {reduce_scatter, "ring", "partial sums travel round the ring", reduce_scatter_ring, anywhere},
    {reduce_scatter, "recursive_halving", "half of what remains each round",
     reduce_scatter_recursive_halving, power_of_two},
    {reduce_scatter, "pairwise", "each pair meets once", reduce_scatter_pairwise, anywhere},
    {reduce_scatter,
     "linear",
     "each rank's turn to send to all",
     reduce_scatter_linear,
     anywhere,
     {.rank_order = true}},
    {reduce_scatter,
     "direct",
     "each reduces its part out of shared slots",
     reduce_scatter_direct,
     on_one_board,
     {.rank_order = true}},
    {reduce_scatter,
     "pull",
     "each reduces its part out of others' memory",
     reduce_scatter_pull,
     where_ranks_pull,
     {.rank_order = true}},
    {alltoall,
     "pairwise",
     "each pair meets once",
     alltoall_pairwise,
     anywhere,
     {.rank_order = true, .in_place = false}},
    {alltoall,
     "bruck",
     "in log2 P rounds, parts travelling together",
     alltoall_bruck,
     anywhere,
     {.rank_order = true, .ragged = false}},
    {alltoall,
     "linear",
     "each sends to each at once",
     alltoall_linear,
     anywhere,
     {.rank_order = true, .in_place = false}},
    {alltoall,
     "direct",
     "everyone reads its part of everyone's slot",
     alltoall_direct,
     on_one_board,
     {.rank_order = true, .ragged = false}},
    {alltoall,
     "pull",
     "everyone reads its part of everyone's memory",
     alltoall_pull,
     where_ranks_pull,
     {.rank_order = true, .in_place = false}},
    {scatter,
     "binomial",
     "down a binomial tree, halving the load",
     scatter_binomial,
     anywhere,
     {.rank_order = true, .ragged = false}},
    {scatter, "linear", "the root sends to each", scatter_linear, anywhere, {.rank_order = true}},
    {scatter,
     "direct",
     "each reads its part of the root's slot",
     scatter_direct,
     on_one_board,
     {.rank_order = true, .ragged = false}},
    {gather,
     "binomial",
     "up a binomial tree, doubling the load",
     gather_binomial,
     anywhere,
     {.rank_order = true, .ragged = false}},
    {gather, "linear", "each sends to the root", gather_linear, anywhere, {.rank_order = true}},
    {gather,
     "direct",
     "the root reads everyone's shared slot",
     gather_direct,
     on_one_board,
     {.rank_order = true, .ragged = false}},
    {barrier,
     "dissemination",
     "word to a rank twice as far each round",
     barrier_dissemination,
     anywhere,
     {.rank_order = true}},
    {barrier,
     "flat",
     "everyone watches everyone's flag",
     barrier_flat,
     on_one_board,
     {.rank_order = true}},
});

}  // namespace

std::span<const Algorithm> algorithms() noexcept { return kAlgorithms; }

const Algorithm& find_algorithm(Collective collective, std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& algorithm : kAlgorithms) {
    if (algorithm.collective != collective) continue;
    if (algorithm.name == name) return algorithm;
    names.push_back(algorithm.name);
  }
  throw Error(Errc::invalid_argument,
              unknown(fmt::format("{} algorithm", sinew::name(collective)), name, names));
}

World make_world(const Algorithm& algorithm, int size, int root, std::uint32_t segments,
                 std::span<const int> node_of, Capabilities capabilities) {
  if (root < 0 || root >= size)
    throw Error(Errc::invalid_argument, fmt::format("root {} is not a rank of {}", root, size));
  World world{algorithm.collective, root, {}};
  for (int rank = 0; rank < size; ++rank) {
    const Place place{rank, size, root, segments, node_of};
    if (!algorithm.fits(place, capabilities))
      throw Error(Errc::unsupported,
                  fmt::format("{} {} does not fit {} ranks{}", name(algorithm.collective),
                              algorithm.name, size, node_of.empty() ? "" : " on these nodes"));
    world.ranks.push_back(algorithm.make(place));
  }
  return world;
}

}  // namespace sinew
