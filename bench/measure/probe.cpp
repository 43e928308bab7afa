#include "measure/probe.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "measure/os.hpp"

namespace sinew::bench {
namespace {

constexpr int kBursts = 41;
constexpr int kTripsInBurst = 500;
constexpr std::uint64_t kGiveUpNs = 200'000'000;  // a busy machine takes a core away at times

struct alignas(128) Flag {
  std::atomic<std::uint32_t> value{0};
};

std::vector<int> first_two_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

/// False when the flag did not reach the value in time.
bool await(const Flag& flag, std::uint32_t value, std::uint64_t deadline_ns) {
  for (std::uint32_t looks = 1; flag.value.load(std::memory_order_acquire) != value; ++looks) {
    if (looks % 1024 == 0 && now_ns() > deadline_ns) return false;
    pause_briefly();
  }
  return true;
}

}  // namespace

std::optional<double> flag_half_round_trip_us() {
  const auto cores = first_two_cores();
  if (cores.size() < 2) return std::nullopt;
  Flag ping;
  Flag pong;
  const std::uint64_t deadline_ns = now_ns() + kGiveUpNs;
  constexpr std::uint32_t kTrips = kBursts * kTripsInBurst;
  std::thread answering([&] {
    pin_to(cores[1]);
    for (std::uint32_t trip = 1; trip <= kTrips && await(ping, trip, deadline_ns); ++trip) {
      pong.value.store(trip, std::memory_order_release);
    }
  });
  std::vector<double> bursts_us;
  std::thread asking([&] {
    pin_to(cores[0]);
    std::uint64_t begin_ns = now_ns();
    for (std::uint32_t trip = 1; trip <= kTrips; ++trip) {
      ping.value.store(trip, std::memory_order_release);
      if (!await(pong, trip, deadline_ns)) return;
      if (trip % kTripsInBurst != 0) continue;
      const std::uint64_t end_ns = now_ns();
      bursts_us.push_back(static_cast<double>(end_ns - begin_ns) * 1e-3 / (2.0 * kTripsInBurst));
      begin_ns = end_ns;
    }
  });
  asking.join();
  answering.join();
  if (bursts_us.empty()) return std::nullopt;
  const auto middle = bursts_us.begin() + static_cast<std::ptrdiff_t>(bursts_us.size() / 2);
  std::ranges::nth_element(bursts_us, middle);
  return *middle;
}

}  // namespace sinew::bench
