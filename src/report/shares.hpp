// Parts of wholes that may be nothing.
#pragma once

namespace sinew::report {

inline double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
inline double percent_of(double part, double whole) { return 100 * ratio(part, whole); }

}  // namespace sinew::report
