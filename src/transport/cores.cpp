#include "transport/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace sinew {

int within_quota(int cores) {
  // cgroup v2: "<quota> <period>" in microseconds, or "max <period>".
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (file >> quota >> period && period > 0)
    cores = std::min(cores, static_cast<int>(std::ceil(quota / period)));
  return std::max(1, cores);
}

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return within_quota(sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1);
}

}  // namespace sinew
