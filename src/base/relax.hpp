// One round of a loop that waits for another processor.
#pragma once

namespace sinew {

/// Leaves the core's other thread more of it for a moment.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace sinew
