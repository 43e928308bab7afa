#include "cli/doctor_checks.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>

#include "base/text.hpp"
#include "runtime/mpi_plugin.hpp"
#include "runtime/plugin.hpp"

namespace sinew {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int affinity_cores() {
  // More processors than the fixed set holds would make the call fail: ask with room for 16384.
  std::array<cpu_set_t, 16> sets{};
  if (::sched_getaffinity(0, sizeof sets, sets.data()) != 0) return 1;
  return CPU_COUNT_S(sizeof sets, sets.data());
}

// The smallest quota on the way from our cgroup (version 2) to the root, in processors.
double quota_cores() {
  double cores = HUGE_VAL;
  const auto consider = [&](const std::string& quota, const std::string& period) {
    if (!quota.empty() && quota != "max" && std::atof(period.c_str()) > 0 &&
        std::atof(quota.c_str()) > 0)
      cores = std::min(cores, std::atof(quota.c_str()) / std::atof(period.c_str()));
  };
  std::ifstream groups("/proc/self/cgroup");
  std::string path = "/";
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::")) path = line.substr(3);
  while (true) {
    const auto words = first_line("/sys/fs/cgroup" + path + "/cpu.max");
    const auto space = words.find(' ');
    if (space != std::string::npos) consider(words.substr(0, space), words.substr(space + 1));
    const auto slash = path.find_last_of('/');
    if (path.size() <= 1 || slash == std::string::npos) break;
    path.resize(std::max<std::size_t>(slash, 1));
  }
  consider(first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),  // version 1
           first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  return cores;
}

Checked check_cores(int ranks) {
  const double cores = usable_cores();
  Checked check{"cores", Level::ok, fmt::format("{:.4g} usable for {} ranks", cores, ranks), ""};
  if (ranks <= cores) return check;
  check.level = Level::warn;
  check.repair = "ranks that outnumber cores take turns: start fewer, or widen the cpuset or quota";
  return check;
}

Checked check_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0 || hwloc_topology_load(topology) != 0)
    return {"topology", Level::warn, "hwloc cannot read it", "--bind will not work here"};
  const auto count = [&](hwloc_obj_type_t type) {
    return std::max(0, hwloc_get_nbobjs_by_type(topology, type));
  };
  const int cores = count(HWLOC_OBJ_CORE), l3 = count(HWLOC_OBJ_L3CACHE),
            numa = count(HWLOC_OBJ_NUMANODE);
  std::string caches = "no L3 visible";
  if (l3 > 0) {
    const auto* cache = hwloc_get_obj_by_type(topology, HWLOC_OBJ_L3CACHE, 0);
    caches = fmt::format("{} L3 of {}", l3, human_bytes(cache->attr->cache.size));
  }
  hwloc_topology_destroy(topology);
  return {
      "topology", Level::ok,
      fmt::format("{} cores, {}, {} memory domain{}", cores, caches, numa, numa == 1 ? "" : "s"),
      ""};
}

Checked check_dev_shm() {
  struct statvfs info {};
  constexpr std::uint64_t kSmall = 256ULL << 20;
  if (::statvfs("/dev/shm", &info) != 0)
    return {"/dev/shm", Level::warn, std::strerror(errno),
            "Sinew does not use it, but MPIs do: mount -t tmpfs tmpfs /dev/shm"};
  const std::uint64_t total = std::uint64_t{info.f_blocks} * info.f_frsize;
  const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
  Checked check{"/dev/shm", Level::ok,
                fmt::format("{} free of {}", human_bytes(free), human_bytes(total)), ""};
  if (free >= kSmall) return check;
  check.level = Level::warn;
  check.repair =
      "small for MPI peers: mount -o remount,size=2G /dev/shm (containers: --shm-size=2g)";
  return check;
}

Checked check_memfd() {
  constexpr std::size_t kBytes = 1 << 20;
  const int fd = ::memfd_create("sinew-doctor", MFD_CLOEXEC);
  bool works = fd >= 0 && ::ftruncate(fd, kBytes) == 0;
  if (works) {
    void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    works = memory != MAP_FAILED;
    if (works) ::munmap(memory, kBytes);
  }
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (works) return {"memfd_create", Level::ok, "works", ""};
  return {"memfd_create", Level::fail, std::strerror(error),
          "shared memory needs it: allow the call in the sandbox's seccomp filter"};
}

// Ranks are siblings, so one child tries to read another's memory.
Checked check_process_vm_readv() {
  const std::uint64_t secret = 0x5357'494E'4555ULL;
  const pid_t target = ::fork();
  if (target == 0) {
    ::pause();
    ::_exit(0);
  }
  const pid_t reader = target < 0 ? -1 : ::fork();
  if (reader == 0) {
    std::uint64_t seen = 0;
    iovec here{&seen, sizeof seen}, there{const_cast<std::uint64_t*>(&secret), sizeof secret};
    const auto got = ::process_vm_readv(target, &here, 1, &there, 1, 0);
    ::_exit(got == sizeof seen && seen == secret ? 0 : errno != 0 ? errno : 255);
  }
  int status = -1;
  if (reader > 0) ::waitpid(reader, &status, 0);
  if (target > 0) {
    ::kill(target, SIGKILL);
    ::waitpid(target, nullptr, 0);
  }
  const auto scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  const auto yama = scope.empty() ? std::string("no Yama") : "ptrace_scope " + scope;
  if (status == 0)
    return {"process_vm_readv", Level::ok, fmt::format("between ranks works ({})", yama), ""};
  const auto why = WIFEXITED(status) ? std::strerror(WEXITSTATUS(status)) : "the attempt died";
  return {"process_vm_readv", Level::warn, fmt::format("{} ({})", why, yama),
          "large messages go through slots: sysctl kernel.yama.ptrace_scope=0, or CAP_SYS_PTRACE"};
}

Checked check_membarrier() {
  const auto commands = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  const bool expedited = commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
  if (expedited) return {"membarrier", Level::ok, "expedited", ""};
  return {"membarrier", Level::warn, commands < 0 ? std::strerror(errno) : "not expedited",
          "waiting uses fences instead; nothing to do unless a sandbox forbids the call"};
}

Checked check_pidfd() {
  const auto fd = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  if (fd < 0)
    return {"pidfd_open", Level::warn, std::strerror(errno),
            "deaths are seen by closed sockets only; Linux 5.3 or a wider sandbox has it"};
  ::close(fd);
  return {"pidfd_open", Level::ok, "works", ""};
}

Checked check_limit(const std::string& name, decltype(RLIMIT_NOFILE) which, rlim_t wanted,
                    bool bytes, const std::string& repair) {
  rlimit limit{};
  ::getrlimit(which, &limit);
  const auto text = limit.rlim_cur == RLIM_INFINITY ? std::string("unlimited")
                    : bytes                         ? human_bytes(limit.rlim_cur)
                                                    : std::to_string(limit.rlim_cur);
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted)
    return {name, Level::ok, text, ""};
  return {name, Level::warn, text, repair};
}

Checked check_clock() {
  const auto source =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  timespec step{};
  ::clock_getres(CLOCK_MONOTONIC, &step);
  Checked check{"clock", Level::ok,
                fmt::format("{}, {} ns", source.empty() ? "unknown source" : source, step.tv_nsec),
                ""};
  const bool quick = source.empty() || source == "tsc" || source == "arch_sys_counter" ||
                     source == "kvm-clock" || source.starts_with("hyperv");
  if (quick && step.tv_sec == 0 && step.tv_nsec <= 1000) return check;
  check.level = Level::warn;
  check.repair = "reading it is slow, so short times are blurred: boot with clocksource=tsc";
  return check;
}

Checked check_huge_pages() {
  const auto line = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const auto begin = line.find('['), end = line.find(']');
  const bool known = begin != std::string::npos && end != std::string::npos;
  const auto value = known ? line.substr(begin + 1, end - begin - 1) : "unknown";
  if (value != "never" && value != "deny") return {"huge pages (shmem)", Level::ok, value, ""};
  return {"huge pages (shmem)", Level::ok, value,
          "optional: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled"};
}

std::string output_line(const std::string& command) {
  std::string line;
  if (auto* pipe = ::popen((command + " 2>/dev/null").c_str(), "r")) {
    std::array<char, 256> buffer{};
    if (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr)
      line = buffer.data();
    while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr) {
    }
    ::pclose(pipe);
  }
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0)
    line.pop_back();
  return line;
}

// Loaded in a process of its own: one process cannot hold two MPIs.
Checked check_mpi_plugin(Mpi mpi) {
  const auto title = fmt::format("mpi over {}", name(mpi));
  const auto file = mpi_plugin_file(mpi, process_environment());
  if (file.empty())
    return {title, Level::warn, "no plugin",
            fmt::format("only needed under its mpirun: apt install lib{}-dev, then build again",
                        name(mpi))};
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      load_plugin(file);
      ::_exit(0);
    } catch (const Error&) {
      ::_exit(1);
    }
  }
  int status = -1;
  if (child > 0) ::waitpid(child, &status, 0);
  if (status == 0) return {title, Level::ok, file, ""};
  return {title, Level::warn, file + " cannot be loaded",
          "install it from the same build as this program"};
}

}  // namespace

double usable_cores() { return std::min<double>(affinity_cores(), quota_cores()); }

std::vector<Checked> examine(int ranks) {
  if (ranks == 0) ranks = std::max(1, static_cast<int>(usable_cores()));
  const auto wanted = static_cast<rlim_t>(ranks);
  return {check_cores(ranks),
          check_topology(),
          check_memfd(),
          check_dev_shm(),
          check_process_vm_readv(),
          check_membarrier(),
          check_pidfd(),
          check_limit("open files", RLIMIT_NOFILE, 64 + 4 * wanted, false,
                      fmt::format("{} ranks need more: ulimit -n {}", ranks, 64 + 4 * wanted)),
          check_limit("processes", RLIMIT_NPROC, 64 + wanted, false,
                      fmt::format("{} ranks may not all start: ulimit -u {}", ranks, 64 + wanted)),
          check_limit("locked memory", RLIMIT_MEMLOCK, 0, true, ""),
          check_clock(),
          check_huge_pages()};
}

std::vector<Checked> examine_peers() {
  std::vector<Checked> checks;
  const auto add = [&](const std::string& name, std::string found, const std::string& package) {
    const bool missing = found.empty();
    checks.push_back(
        {name, missing ? Level::warn : Level::ok, missing ? "not found" : std::move(found),
         missing ? fmt::format("only needed to compare with it: apt install {}", package) : ""});
  };
  add("Open MPI", output_line("mpirun.openmpi --version"), "openmpi-bin");
  auto mpich = output_line("mpirun.mpich --version | sed -n 's/^ *Version: */MPICH /p'");
  add("MPICH", std::move(mpich), "mpich");
  // Debian's is a static library; a shared one lies where the loader looks.
  add("Gloo", output_line("ls /usr/lib/*/libgloo.* /usr/lib/libgloo.* /usr/local/lib/libgloo.*"),
      "libgloo-dev");
  for (const auto mpi : {Mpi::openmpi, Mpi::mpich}) checks.push_back(check_mpi_plugin(mpi));
  return checks;
}

}  // namespace sinew
