// A place on a core that a stranger keeps busy.
//
// A thread that slept is owed time, but recent kernels let whoever runs finish his slice of some
// milliseconds first, unless the one who wakes up asked for shorter slices. That changes no share:
// it gets the core sooner, and for less long.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace sinew {

class TimeSlice {
 public:
  TimeSlice() = default;
  TimeSlice(const TimeSlice&) = delete;
  TimeSlice& operator=(const TimeSlice&) = delete;
  ~TimeSlice() { restore(); }

  /// Asks for short slices for the calling thread. Nothing happens where the kernel has no such
  /// thing, or where the thread is scheduled in another way than the usual one.
  void shorten() noexcept;
  void restore() noexcept {
    if (thread_ != 0) set_usual();
  }

  /// The calling thread's slice; 0 where it has none of its own.
  static std::uint64_t current_ns() noexcept;

 private:
  void set_usual() noexcept;

  pid_t thread_ = 0;  // whose slices are short; 0: nobody's
  std::uint64_t usual_ns_ = 0;
};

}  // namespace sinew
