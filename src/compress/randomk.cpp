// Random-k: k elements by chance, the same on all ranks because all draw with the same counter. No
// index travels: the values are a small dense vector, and their sum an ordinary allreduce.
#include <algorithm>
#include <limits>
#include <vector>

#include "base/counter_random.hpp"
#include "compress/schemes.hpp"
#include "kernel/select.hpp"

namespace sinew {
namespace {

class RandomK final : public Scheme {
 public:
  explicit RandomK(const SchemeSetup& setup)
      : elements_(static_cast<std::uint32_t>(setup.elements)),
        seed_(setup.parameters->whole("seed")),
        indices_(setup.target_items),
        values_(setup.target_items + 1) {}

  Outcome exchange(Exchange& x) override {
    draw(x);
    x.allreduce("values", std::span(values_));
    // NaN minus NaN is no number either, so one rank's word reaches all.
    if (values_.back() != 0) return Outcome::non_finite;
    const auto timed = x.time(Part::decode);
    std::fill(x.gradient.begin(), x.gradient.end(), 0.0F);
    const float divisor = x.divisor();
    for (std::size_t i = 0; i < indices_.size(); ++i)
      x.gradient[indices_[i]] = values_[i] / divisor;
    x.report.local_items = x.report.items = indices_.size();
    x.feedback.take(indices_);
    x.feedback.commit();
    return Outcome::done;
  }

 private:
  void draw(Exchange& x) {
    const auto timed = x.time(Part::accumulate_select);
    const auto sum = x.feedback.accumulate(x.gradient);
    const Permutation permutation(elements_, random_key(seed_, x.report.step));
    for (std::uint32_t i = 0; i < indices_.size(); ++i) indices_[i] = permutation(i);
    for (std::size_t i = 0; i < indices_.size(); ++i) values_[i] = sum[indices_[i]];
    // What is not drawn may be the NaN: the last value tells.
    values_.back() = all_finite(sum) ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  }

  std::uint32_t elements_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
};

}  // namespace

std::unique_ptr<Scheme> make_randomk(const SchemeSetup& setup) {
  return std::make_unique<RandomK>(setup);
}

}  // namespace sinew
