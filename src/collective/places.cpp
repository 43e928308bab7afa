#include "collective/places.hpp"

#include <map>
#include <numeric>

namespace sinew {

std::vector<std::vector<int>> nodes_of(const Place& place) {
  std::vector<std::vector<int>> nodes;
  std::map<int, std::size_t> index;
  for (int rank = 0; rank < place.size; ++rank) {
    const int node = place.node_of.empty() ? 0 : place.node_of[static_cast<std::size_t>(rank)];
    const auto [at, fresh] = index.try_emplace(node, nodes.size());
    if (fresh) nodes.emplace_back();
    nodes[at->second].push_back(rank);
  }
  return nodes;
}

}  // namespace sinew
