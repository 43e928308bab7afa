// TopkA: each rank's k largest elements to everybody; everybody adds them up.
#include "compress/item_gather.hpp"
#include "compress/schemes.hpp"
#include "kernel/top_k.hpp"

namespace sinew {
namespace {

class TopkA final : public Scheme {
 public:
  explicit TopkA(const SchemeSetup& setup)
      : top_(setup.elements, setup.target_items), gather_(setup.elements, setup.size) {}

  Outcome exchange(Exchange& x) override {
    const auto chosen = choose(x);
    if (!gather_.run(x, chosen.indices, chosen.values, chosen.finite)) return Outcome::non_finite;
    x.feedback.take(chosen.indices);
    x.feedback.commit();
    return Outcome::done;
  }

 private:
  TopK::Chosen choose(Exchange& x) {
    const auto timed = x.time(Part::accumulate_select);
    const auto [kept, gone, sum] = x.feedback.begin();
    return top_.accumulate(x.gradient, {kept, gone}, sum);
  }

  TopK top_;
  ItemGather gather_;
};

}  // namespace

std::unique_ptr<Scheme> make_topka(const SchemeSetup& setup) {
  return std::make_unique<TopkA>(setup);
}

}  // namespace sinew
