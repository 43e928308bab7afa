// The few ways to wait: there is nothing in MPI to sleep on.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace sinew::mpi {

inline void sleep_for(std::chrono::nanoseconds duration) noexcept {
  const auto ns = duration.count();
  const timespec nap{0, static_cast<long>(std::clamp<std::int64_t>(ns, 0, 999'999'999))};
  nanosleep(&nap, nullptr);
}

// To a few milliseconds, for a few nanoseconds.
inline std::int64_t coarse_ms() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace sinew::mpi
