// Which processors a launched rank may run on.
#pragma once

#include <hwloc.h>

#include <memory>
#include <string>
#include <vector>

namespace sinew {

/// Ranks in turn to the cores, last-level caches or memory domains that this process may use.
class ProcessorBinding {
 public:
  /// "core", "l3", "numa" or "none"; another word throws Error{invalid_argument}.
  explicit ProcessorBinding(const std::string& domain);

  [[nodiscard]] std::size_t domains() const noexcept { return sets_.size(); }
  /// In the child. Returns whether the rank is bound, or needs not be.
  [[nodiscard]] bool bind(int rank) const noexcept;

 private:
  struct Destroy {
    void operator()(hwloc_topology_t topology) const noexcept { hwloc_topology_destroy(topology); }
  };
  std::unique_ptr<hwloc_topology, Destroy> topology_;
  std::vector<hwloc_const_cpuset_t> sets_;  // owned by the topology
};

}  // namespace sinew
