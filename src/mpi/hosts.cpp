#include "mpi/hosts.hpp"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <string>

#include "mpi/wire.hpp"
#include "transport/cores.hpp"

namespace sinew::mpi {

Resident this_resident() {
  Resident resident;
  resident.protocol = kProtocol;
  resident.quota = within_quota(std::numeric_limits<std::int32_t>::max());
  std::string host(256, '\0');
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  if (!std::getline(boot, host)) gethostname(host.data(), host.size());
  resident.host = XXH3_64bits(host.data(), host.size());
  CPU_ZERO(&resident.processors);
  if (sched_getaffinity(0, sizeof resident.processors, &resident.processors) != 0)
    CPU_SET(0, &resident.processors);
  return resident;
}

int shared_cores(std::span<const Resident> residents) {
  struct Host {
    cpu_set_t processors;
    int quota, ranks;
  };
  std::map<std::uint64_t, Host> hosts;
  for (const auto& resident : residents) {
    auto& host = hosts.try_emplace(resident.host, Host{{}, resident.quota, 0}).first->second;
    CPU_OR(&host.processors, &host.processors, &resident.processors);
    host.quota = std::min(host.quota, resident.quota);
    ++host.ranks;
  }
  double each = std::numeric_limits<double>::infinity();
  for (const auto& [id, host] : hosts)
    each = std::min(
        each, static_cast<double>(std::min(host.quota, CPU_COUNT(&host.processors))) / host.ranks);
  constexpr double kRounding = 1e-6;
  return std::max(1, static_cast<int>(each * static_cast<double>(residents.size()) + kRounding));
}

std::vector<int> nodes_of(std::span<const Resident> residents) {
  std::map<std::uint64_t, int> numbers;
  std::vector<int> nodes;
  for (const auto& resident : residents)
    nodes.push_back(
        numbers.try_emplace(resident.host, static_cast<int>(numbers.size())).first->second);
  return numbers.size() > 1 ? nodes : std::vector<int>{};
}

}  // namespace sinew::mpi
