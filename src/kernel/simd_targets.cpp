#include "kernel/simd_targets.hpp"

#include <hwy/targets.h>

namespace sinew {

void choose_simd_for_test(SimdLevel level) {
  std::int64_t targets = hwy::SupportedTargets();
  if (level == SimdLevel::avx2) targets &= ~(HWY_AVX3 | HWY_AVX3_DL);
  if (level == SimdLevel::none) targets = 0;
  hwy::GetChosenTarget().Update(targets);
}

}  // namespace sinew
