// Fixed threshold: every element of at least that magnitude, gathered by everybody. How many there
// are is up to the data.
#include "compress/item_gather.hpp"
#include "compress/schemes.hpp"
#include "compress/select_above.hpp"

namespace sinew {
namespace {

class Threshold final : public Scheme {
 public:
  explicit Threshold(const SchemeSetup& setup)
      : floor_(magnitude(static_cast<float>((*setup.parameters)["threshold"]))),
        gather_(setup.elements, setup.size) {
    check_counts_in_32_bits("threshold", setup.elements);
  }

  Outcome exchange(Exchange& x) override {
    const auto chosen = choose(x);
    if (!gather_.run(x, chosen.indices, chosen.values, chosen.finite)) return Outcome::non_finite;
    x.feedback.take(chosen.indices);
    x.feedback.commit();
    return Outcome::done;
  }

 private:
  SelectAbove::Chosen choose(Exchange& x) {
    const auto timed = x.time(Part::accumulate_select);
    return select_.choose(x.feedback.accumulate(x.gradient), floor_);
  }

  Magnitude floor_;
  SelectAbove select_;
  ItemGather gather_;
};

}  // namespace

std::unique_ptr<Scheme> make_threshold(const SchemeSetup& setup) {
  return std::make_unique<Threshold>(setup);
}

}  // namespace sinew
