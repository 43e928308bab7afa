// A compression scheme of your own, without touching the library: a class, a row, and every
// compressor can use it. This one sends one tensor a step, in turn, and keeps the others.
//   sinew launch -n 4 -- ./example-own_scheme
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <sinew/sinew.hpp>

namespace {

class InTurn final : public sinew::Scheme {
 public:
  explicit InTurn(const sinew::SchemeSetup& setup)
      : stay_(setup.parameters->whole("stay")), layout_(setup.layout.begin(), setup.layout.end()) {}

  sinew::Outcome exchange(sinew::Exchange& x) override {
    const auto sum = x.feedback.accumulate(x.gradient);  // with what earlier steps left
    const bool bad = std::any_of(sum.begin(), sum.end(), [](float v) { return !std::isfinite(v); });
    if (x.any_rank("check", bad)) return sinew::Outcome::non_finite;

    const auto turn = x.report.step / stay_ % layout_.size();
    std::size_t begin = 0;
    for (std::size_t i = 0; i < turn; ++i) begin += layout_[i].elements();
    const auto mine = sum.subspan(begin, layout_[turn].elements());
    values_.assign(mine.begin(), mine.end());
    x.allreduce("values", std::span<float>(values_));

    std::fill(x.gradient.begin(), x.gradient.end(), 0.0F);
    for (std::size_t i = 0; i < values_.size(); ++i)
      x.gradient[begin + i] = values_[i] / x.divisor();
    x.report.items = x.report.local_items = values_.size();
    std::fill(mine.begin(), mine.end(),
              0.0F);  // sent, so no longer kept: only now, when it arrived
    x.feedback.commit();
    return sinew::Outcome::done;
  }

 private:
  std::uint64_t stay_;
  std::vector<sinew::TensorSpec> layout_;
  std::vector<float> values_;
};

constexpr sinew::SchemeParameter kParameters[] = {
    {"stay", 1, 1, 1000, true, "steps with one tensor before the next has its turn"},
};
constexpr sinew::SchemeInfo kOwn[] = {
    {.name = "in_turn",
     .summary = "one tensor a step",
     .make = [](const sinew::SchemeSetup& setup) -> std::unique_ptr<sinew::Scheme> {
       return std::make_unique<InTurn>(setup);
     },
     .feedback = true,
     .conserves = true,
     .parameters = kParameters},
};

}  // namespace

int main() try {
  sinew::Communicator comm = sinew::connect();
  const std::vector<sinew::TensorSpec> layout{{"weights", {100, 10}}, {"bias", {10}}};
  sinew::Compressor compressor(comm, sinew::find_scheme("in_turn", kOwn), layout,
                               {.parameters = {{"stay", 2}}});
  // Ones on every rank, six steps: in the end all that is not with the sum is kept.
  std::vector<float> sum(1010);
  for (int step = 0; step < 6; ++step) {
    std::vector<float> gradient(1010, 1.0F);
    const auto& report = compressor.allreduce(gradient);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
    if (comm.rank() == 0)
      std::printf("step %d: %llu of %llu elements, %llu bytes sent\n", step,
                  static_cast<unsigned long long>(report.items),
                  static_cast<unsigned long long>(report.elements),
                  static_cast<unsigned long long>(report.sent_bytes()));
  }
  bool right = sum[0] == 6 && sum[1009] == 4;
  for (std::size_t i = 0; i < sum.size(); ++i)
    right = right && sum[i] + compressor.feedback().kept()[i] == 6;
  return right ? 0 : 1;
} catch (const sinew::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
