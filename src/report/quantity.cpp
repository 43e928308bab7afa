#include "report/quantity.hpp"

#include <array>

namespace sinew::report {

double student_t95(std::size_t freedom) {
  constexpr std::array kFirst{0.0,   12.706, 4.303, 3.182, 2.776, 2.571, 2.447,
                              2.365, 2.306,  2.262, 2.228, 2.201, 2.179, 2.160,
                              2.145, 2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  if (freedom < kFirst.size()) return kFirst[freedom];
  // The first terms of its expansion around the normal distribution; off by less than 0.001 here.
  constexpr double kNormal = 1.959964;
  const auto v = static_cast<double>(freedom);
  return kNormal + (std::pow(kNormal, 3) + kNormal) / (4 * v) +
         (5 * std::pow(kNormal, 5) + 16 * std::pow(kNormal, 3) + 3 * kNormal) / (96 * v * v);
}

}  // namespace sinew::report
