// fp16 and bf16: the allreduce itself in 16 bits. What is to be averaged is divided first, so that
// the sum is no larger than its parts.
#include <algorithm>
#include <cmath>
#include <vector>

#include "compress/schemes.hpp"
#include "kernel/convert.hpp"
#include "kernel/large_buffer.hpp"
#include "kernel/select.hpp"

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
    x.report.items = x.report.local_items = x.gradient.size();
    for_blocks(x.gradient, [&](std::span<float> values, std::span<Half> narrow) {
      convert(std::span<const Half>(narrow), values);
      if (all_finite(values)) return;
      for (const float value : values) x.report.overflows += std::isfinite(value) ? 0 : 1;
    });
    return x.report.overflows == 0 || x.propagates ? Outcome::done : Outcome::non_finite;
  }

 private:
  void encode(Exchange& x) {
    const auto timed = x.time(Part::encode);
    const float divisor = x.divisor();  // asked for once, so that the loop is one of vectors
    for_blocks(x.gradient, [&](std::span<float> values, std::span<Half> narrow) {
      if (divisor != 1)
        for (float& value : values) value /= divisor;
      convert(std::span<const float>(values), narrow);
    });
  }

  /// Parts that stay in the nearest cache while more than one loop is over them.
  template <class Visit>
  void for_blocks(std::span<float> values, Visit visit) {
    constexpr std::size_t kBlock = 4096;
    for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
      const auto elements = std::min(kBlock, values.size() - begin);
      visit(values.subspan(begin, elements), narrow_.all().subspan(begin, elements));
    }
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
