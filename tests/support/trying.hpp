// Ranks that try algorithms, and sums that tell when something went wrong with that.
#pragma once

#include <fmt/format.h>

#include <sinew/algorithms.hpp>
#include "support/local_ranks.hpp"
#include "transport/descriptor.hpp"

namespace sinew::test {

inline constexpr int kCalls = 6;  // of a trial in tests

inline Options trying(int calls = kCalls) {
  Options options{.timeout = std::chrono::seconds(60)};
  options.trial_calls = calls;
  return options;
}

inline LocalSetup local_trying(int calls = kCalls) {
  LocalSetup setup;
  setup.options = trying(calls);
  return setup;
}

using Names = std::vector<std::string>;

inline std::string algorithm_named(std::uint64_t key) {
  for (const auto& algorithm : algorithms())
    if (algorithm_key(algorithm.name) == key) return std::string(algorithm.name);
  return "?";
}

/// By what a rank's collectives were run; "times" is their exchange.
class Ran final : public Observer {
 public:
  void on_event(const Event& event) noexcept override {
    if (event.kind == EventKind::collective)
      names.push_back(event.tag == kTrialTag ? "times" : algorithm_named(event.algorithm));
  }
  Names names;
};

/// Integer-valued, so that no order of adding matters.
inline float summand(int factor, int salt, std::size_t element) {
  return static_cast<float>(factor * (salt % 50 + static_cast<int>(element % 11)));
}
inline std::vector<float> summands(const Communicator& c, std::size_t count, int salt) {
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = summand(c.rank() + 1, salt, i);
  return data;
}
/// What is wrong with their sum, or "".
inline std::string complaint(const Communicator& c, std::span<const float> sum, int salt) {
  const int ranks = c.size() * (c.size() + 1) / 2;
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (sum[i] != summand(ranks, salt, i))
      return fmt::format("rank {}: element {} of {} is {}", c.rank(), i, sum.size(), sum[i]);
  return "";
}
inline std::string sum_once(Communicator& c, std::size_t count, int salt) {
  auto data = summands(c, count, salt);
  c.allreduce(std::span(data));
  return complaint(c, data, salt);
}

}  // namespace sinew::test
