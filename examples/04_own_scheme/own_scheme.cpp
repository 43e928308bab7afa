// A compression scheme of your own, without touching the library: a class, a row, and it has error
// feedback, warm-up, policies on NaN and measures. This one sends the even elements in one step and
// the odd ones in the next; what waits is not lost.
//   sinew launch -n 4 -- ./example-own_scheme
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include <sinew/sinew.hpp>

namespace {

class EveryOther final : public sinew::Scheme {
 public:
  sinew::Outcome exchange(sinew::Exchange& x) override {
    const auto sum = x.feedback.accumulate(x.gradient);  // gradient + what was kept
    bool finite = true;
    for (const float value : sum) finite &= std::isfinite(value);
    if (x.any_rank("check", !finite)) return sinew::Outcome::non_finite;

    const std::size_t first = x.report.step % 2;
    half_.clear();
    for (std::size_t i = first; i < sum.size(); i += 2)
      half_.push_back(std::exchange(sum[i], 0.0F));  // sent, so not kept
    x.allreduce("half", std::span<float>(half_), x.op);

    std::fill(x.gradient.begin(), x.gradient.end(), 0.0F);
    for (std::size_t i = 0; i < half_.size(); ++i) x.gradient[first + 2 * i] = half_[i];
    x.report.items = x.report.local_items = half_.size();
    x.feedback.commit();  // last: whatever was thrown before it loses nothing
    return sinew::Outcome::done;
  }

 private:
  std::vector<float> half_;
};

std::unique_ptr<sinew::Scheme> make_every_other(const sinew::SchemeSetup&) {
  return std::make_unique<EveryOther>();
}

}  // namespace

int main() try {
  const sinew::SchemeInfo own[] = {{.name = "every_other",
                                    .summary = "even elements, then odd ones",
                                    .make = make_every_other,
                                    .feedback = true}};
  sinew::Communicator comm = sinew::connect();
  sinew::Compressor compressor(comm, sinew::find_scheme("every_other", own), 6, {.measure = true});
  double total = 0;
  for (int step = 0; step < 4; ++step) {
    std::vector<float> gradient{1, 2, 3, 4, 5, 6};
    const auto& report = compressor.allreduce(gradient);
    for (const float value : gradient) total += value;
    if (comm.rank() != 0) continue;
    std::printf("step %d: %llu of 6 elements, error against dense %.2f, result", step,
                static_cast<unsigned long long>(report.items), report.relative_error);
    for (const float value : gradient) std::printf(" %g", value);
    std::printf("\n");
  }
  for (const float value : compressor.feedback().kept()) total += value;
  return total == 4 * 21 ? 0 : 1;  // all that came in was sent or is kept
} catch (const sinew::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
