// A number that is known by its printed digits only.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

namespace sinew::imports {

/// "8.355" says 8.3545 to 8.3555; "8.35" elsewhere, of the same number, leaves 8.3545 to 8.355.
/// The middle of what is left prints again as it was printed, wherever it was.
class Printed {
 public:
  /// `value` is what `digits` say.
  void see(double value, std::string_view digits) {
    const auto point = digits.find('.');
    const auto decimals = point == std::string_view::npos ? 0 : digits.size() - point - 1;
    const double half = 0.5 * std::pow(10.0, -static_cast<double>(decimals));
    if (known_ && value - half <= high_ && value + half >= low_) {
      low_ = std::max(low_, value - half);
      high_ = std::min(high_, value + half);
    } else if (!known_) {
      low_ = value - half;
      high_ = value + half;
      known_ = true;
    }
  }
  /// Says that the number is not below `other`, as far as its digits allow.
  void raise_above(double other) {
    if (known_ && value() <= other) low_ = high_ = std::min(high_, other + (high_ - other) / 4);
  }
  [[nodiscard]] bool is_known() const noexcept { return known_; }
  [[nodiscard]] double value() const noexcept { return (low_ + high_) / 2; }

 private:
  bool known_ = false;
  double low_ = 0, high_ = 0;
};

}  // namespace sinew::imports
