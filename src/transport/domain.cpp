#include "transport/domain.hpp"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace sinew {
namespace {

struct FreeTopology {
  void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
};
struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using Topology = std::unique_ptr<hwloc_topology, FreeTopology>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

// Nothing where it cannot be read.
Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {};
  Topology topology(raw);
  if (hwloc_topology_load(raw) != 0) return {};
  return topology;
}

// The one object of a kind that holds all of `cpus`, or null.
hwloc_obj_t holder(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_bitmap_t cpus) {
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;)
    if (hwloc_bitmap_isincluded(cpus, object->complete_cpuset) != 0) return object;
  return nullptr;
}

bool is_everything(const cpu_set_t& cpus) {
  return CPU_COUNT(&cpus) >= sysconf(_SC_NPROCESSORS_ONLN);
}

int domain_of(hwloc_topology_t topology, const cpu_set_t& cpus) {
  const Bitmap wanted(hwloc_bitmap_alloc());
  if (is_everything(cpus) || !wanted) return -1;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &cpus)) hwloc_bitmap_set(wanted.get(), cpu);
  // Virtual machines may show no caches.
  for (const auto type : {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_NUMANODE}) {
    const auto object = holder(topology, type, wanted.get());
    // Its first processor is what all processes call alike, whatever each may see of the rest.
    if (object != nullptr) return hwloc_bitmap_first(object->complete_cpuset);
    if (hwloc_get_nbobjs_by_type(topology, type) > 0) return -1;
  }
  return -1;
}

}  // namespace

std::vector<int> domains_of(std::span<const cpu_set_t> sets) {
  std::vector<int> domains(sets.size(), -1);
  if (std::all_of(sets.begin(), sets.end(), is_everything)) return domains;  // reading takes 10 ms
  const auto topology = load_topology();
  if (!topology) return domains;
  std::transform(sets.begin(), sets.end(), domains.begin(),
                 [&](const cpu_set_t& cpus) { return domain_of(topology.get(), cpus); });
  return domains;
}

std::vector<int> nodes_from(std::span<const int> domains) {
  std::vector<int> seen, nodes;
  for (const int domain : domains) {
    if (domain < 0) return {};
    auto at = std::find(seen.begin(), seen.end(), domain);
    if (at == seen.end()) at = seen.insert(at, domain);
    nodes.push_back(static_cast<int>(at - seen.begin()));
  }
  return seen.size() > 1 ? nodes : std::vector<int>{};
}

}  // namespace sinew
