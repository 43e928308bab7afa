// Which instruction sets the kernels are compiled for. Include before any Highway header.
//
// AVX2 (2013) and AVX-512 on x86, NEON on Arm. Older x86 takes the plain loops: it has no
// conversion of 16-bit floats, and a third copy of every loop would double the compile time for
// machines nobody trains on. SVE vectors cannot be members of a struct, which the loops need.
#pragma once

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): Highway is configured by macros.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#include <cstdint>

namespace sinew {

enum class SimdLevel : std::uint8_t { best, avx2, none };

/// For tests: what find_reducer(), convert() and copy_bytes() take from now on in this process, so
/// that one machine can check every instruction set it has. Never more than the CPU offers.
void choose_simd_for_test(SimdLevel level);

}  // namespace sinew
