// What ranks compare of all operations so far, in 32 bits.
#pragma once

#include <cstdint>

namespace sinew {

/// Covers every operation so far, so that ranks that once differed never agree again. `hash` is of
/// the operation, `tag` the caller's.
inline std::uint32_t next_fingerprint(std::uint32_t previous, std::uint64_t hash,
                                      std::uint64_t tag) noexcept {
  std::uint64_t mixed = (hash ^ previous ^ tag * 0xA0761D6478BD642FU) * 0x9E3779B97F4A7C15U;
  mixed ^= mixed >> 32;
  return static_cast<std::uint32_t>(mixed * 0xD6E8FEB86659FD93U >> 32);
}

}  // namespace sinew
