#include "kernel/simd_targets.hpp"

#include <hwy/targets.h>

namespace sinew {

void choose_simd_for_test(SimdLevel level) {
  std::int64_t targets = hwy::SupportedTargets();
  if (level == SimdLevel::avx2)
    targets &= -2 * std::int64_t{HWY_AVX3};  // better ones have lower bits
  if (level == SimdLevel::none) targets = 0;
  hwy::GetChosenTarget().Update(targets);
}

}  // namespace sinew
