#include "cli/launch_binding.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {

ProcessorBinding::ProcessorBinding(const std::string& domain) {
  constexpr std::array<std::string_view, 4> kDomains{"core", "l3", "numa", "none"};
  if (std::find(kDomains.begin(), kDomains.end(), domain) == kDomains.end())
    throw Error(Errc::invalid_argument, unknown("binding", domain, kDomains));
  if (domain == "none") return;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0)
    throw Error(Errc::system, "cannot read the topology of this machine");
  topology_.reset(topology);
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING);
  if (hwloc_topology_load(topology) != 0)
    throw Error(Errc::system, "cannot read the topology of this machine");
  const auto type = domain == "core" ? HWLOC_OBJ_CORE
                    : domain == "l3" ? HWLOC_OBJ_L3CACHE
                                     : HWLOC_OBJ_NUMANODE;
  const int count = hwloc_get_nbobjs_by_type(topology, type);
  for (int i = 0; i < count; ++i)
    sets_.push_back(hwloc_get_obj_by_type(topology, type, static_cast<unsigned>(i))->cpuset);
  if (sets_.empty())  // virtual machines may show no caches: then the machine is the one domain
    sets_.push_back(hwloc_topology_get_topology_cpuset(topology));
}

bool ProcessorBinding::bind(int rank) const noexcept {
  if (sets_.empty()) return true;
  const auto set = sets_[static_cast<std::size_t>(rank) % sets_.size()];
  return hwloc_set_cpubind(topology_.get(), set, HWLOC_CPUBIND_PROCESS) == 0;
}

}  // namespace sinew
