// How late the slowest of many is: what a synchronous step waits for.
#pragma once

namespace sinew {

/// Expectation of the largest of `count` independent normal numbers, in standard deviations.
double expected_normal_max(double count);

}  // namespace sinew
