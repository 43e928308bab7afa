// Clocks of a trace: CLOCK_MONOTONIC, and the processor's counter where it runs evenly.
#pragma once

#include <ctime>

#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace sinew::trace {

inline std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

/// A fence would cost more than the calls it delimits; out of order it errs by nanoseconds.
inline std::uint64_t cycle_count() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return monotonic_ns();
#endif
}

}  // namespace sinew::trace
