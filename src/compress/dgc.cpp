// Deep gradient compression: momentum is applied before selecting, so that what waits gathers speed
// like what is sent; gradients are clipped, and density comes down in stages. The largest elements
// are gathered by everybody.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "compress/item_gather.hpp"
#include "compress/quality.hpp"
#include "compress/schemes.hpp"
#include "kernel/top_k.hpp"

namespace sinew {
namespace {

constexpr std::string_view kStepName = "dgc/step";
constexpr double kFirstDensity = 0.25, kStage = 0.25;  // 25 %, 6.25 %, 1.6 %, ...

std::string momentum_name(const TensorSpec& tensor) { return "dgc/momentum/" + tensor.name; }

class Dgc final : public Scheme {
 public:
  explicit Dgc(const SchemeSetup& setup)
      : layout_(setup.layout.begin(), setup.layout.end()),
        elements_(setup.elements),
        target_(setup.target_items),
        momentum_(static_cast<float>((*setup.parameters)["momentum"])),
        clip_((*setup.parameters)["clip"] / std::sqrt(static_cast<double>(setup.size))),
        ramp_steps_(setup.parameters->whole("ramp_steps")),
        velocity_(elements_),
        next_(elements_),
        gather_(setup.elements, setup.size) {}

  Outcome exchange(Exchange& x) override {
    const auto chosen = choose(x);
    try {
      if (!gather_.run(x, chosen.indices, chosen.values, chosen.finite)) return refuse(x);
    } catch (...) {
      // All that came in is kept, and so is what it did to the velocity.
      velocity_.swap(next_);
      throw;
    }
    velocity_.swap(next_);
    for (const auto index : chosen.indices) velocity_[index] = 0;
    x.feedback.take(chosen.indices);
    x.feedback.commit();
    ++step_;
    return Outcome::done;
  }

  void save(State& state) const override {
    state.put(std::string(kStepName), std::span<const std::uint64_t>(&step_, 1));
    auto rest = std::span<const float>(velocity_);
    for (const auto& tensor : layout_) {
      state.put(momentum_name(tensor), rest.first(tensor.elements()));
      rest = rest.subspan(tensor.elements());
    }
  }
  // Without a momentum of that size it begins at rest.
  void load(const State& state) override {
    const auto step = state.get<std::uint64_t>(kStepName);
    step_ = step.empty() ? 0 : step.front();
    auto rest = std::span(velocity_);
    for (const auto& tensor : layout_) {
      const auto mine = rest.first(tensor.elements());
      const auto saved = state.get<float>(momentum_name(tensor));
      if (saved.size() == mine.size())
        std::copy(saved.begin(), saved.end(), mine.begin());
      else
        std::fill(mine.begin(), mine.end(), 0.0F);
      rest = rest.subspan(tensor.elements());
    }
  }

 private:
  TopK::Chosen choose(Exchange& x) {
    const auto timed = x.time(Part::accumulate_select);
    const float scale = clipping(x.gradient);
    for (std::size_t i = 0; i < elements_; ++i)
      next_[i] = momentum_ * velocity_[i] + scale * x.gradient[i];
    const auto items = items_now();
    if (!top_ || items != top_items_) top_.emplace(elements_, top_items_ = items);
    x.report.target_items = items;
    const auto [kept, gone, sum] = x.feedback.begin();
    return top_->accumulate(next_, {kept, gone}, sum);
  }

  // This rank's share of the norm allowed for all: P independent gradients of norm c / sqrt(P) add
  // up to one of norm c.
  [[nodiscard]] float clipping(std::span<const float> gradient) const {
    if (clip_ == 0) return 1;
    const double size = norm(gradient);
    return size > clip_ ? static_cast<float>(clip_ / size) : 1;
  }

  [[nodiscard]] std::uint64_t items_now() const {
    if (ramp_steps_ == 0) return target_;
    const auto stage = std::min<std::uint64_t>(step_ / ramp_steps_, 64);
    const double density = kFirstDensity * std::pow(kStage, static_cast<double>(stage));
    return std::max(target_, static_cast<std::uint64_t>(density * static_cast<double>(elements_)));
  }

  // The step either has not been, or is done densely, with everything that waited in it.
  Outcome refuse(Exchange& x) {
    if (x.propagates) std::fill(velocity_.begin(), velocity_.end(), 0.0F);
    return Outcome::non_finite;
  }

  std::vector<TensorSpec> layout_;
  std::size_t elements_;
  std::uint64_t target_;
  float momentum_;
  double clip_;  // of this rank's gradient; 0: none
  std::uint64_t ramp_steps_, step_ = 0;
  std::vector<float> velocity_, next_;
  std::optional<TopK> top_;
  std::uint64_t top_items_ = 0;
  ItemGather gather_;
};

}  // namespace

std::unique_ptr<Scheme> make_dgc(const SchemeSetup& setup) { return std::make_unique<Dgc>(setup); }

}  // namespace sinew
