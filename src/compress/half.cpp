// fp16 and bf16: the allreduce itself in 16 bits. What is to be averaged is divided first, so that
// the sum is no larger than its parts.
#include <algorithm>
#include <cmath>
#include <vector>

#include "compress/schemes.hpp"
#include "kernel/convert.hpp"
#include "kernel/large_buffer.hpp"

namespace sinew {
namespace {

template <class Half>
class HalfScheme final : public Scheme {
 public:
  explicit HalfScheme(const SchemeSetup& setup) : narrow_(setup.elements) {}

  Outcome exchange(Exchange& x) override {
    encode(x);
    x.allreduce("values", narrow_.all());
    const auto timed = x.time(Part::decode);
    convert(std::span<const Half>(narrow_.all()), x.gradient);
    x.report.items = x.report.local_items = x.gradient.size();
    for (const float value : x.gradient) x.report.overflows += std::isfinite(value) ? 0 : 1;
    return x.report.overflows == 0 || x.propagates ? Outcome::done : Outcome::non_finite;
  }

 private:
  void encode(Exchange& x) {
    const auto timed = x.time(Part::encode);
    if (x.divisor() != 1)
      for (float& value : x.gradient) value /= x.divisor();
    convert(std::span<const float>(x.gradient), narrow_.all());
  }

  LargeBuffer<Half> narrow_;
};

}  // namespace

std::unique_ptr<Scheme> make_fp16(const SchemeSetup& setup) {
  return std::make_unique<HalfScheme<f16>>(setup);
}
std::unique_ptr<Scheme> make_bf16(const SchemeSetup& setup) {
  return std::make_unique<HalfScheme<bf16>>(setup);
}

}  // namespace sinew
