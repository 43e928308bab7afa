// What a sparse allreduce must show, for every rank count, over threads, processes and sockets, and
// as training runs it: nobody looks at the residual between two steps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "compress/items.hpp"
#include "support/fork_ranks.hpp"
#include "support/gradients.hpp"
#include "support/local_ranks.hpp"
#include "support/oktopk_oracle.hpp"
#include "support/scheme_run.hpp"

namespace sinew {
namespace {

using test::Medium;
using test::Vectors;
constexpr int kSizes[] = {1, 2, 3, 4, 5, 7, 8};

bool in_full() { return std::getenv("SINEW_FULL") != nullptr; }

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

struct Trial {
  int size = 2;
  std::size_t elements = 1000;
  int steps = 5;
  std::uint64_t k = 0;  // 0: 2 %
  [[nodiscard]] std::uint64_t items() const {
    return k > 0 ? k : std::max<std::uint64_t>(1, elements / 50);
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{} ranks, {} elements", size, elements);
  }
};

/// What must come out: results by step, residuals by rank in the end.
struct Expected {
  Vectors results, kept;
};

Expected expect(const Trial& trial) {
  test::Oracle oracle;
  Expected expected;
  for (int step = 0; step < trial.steps; ++step) {
    Vectors all;
    for (int rank = 0; rank < trial.size; ++rank)
      all.push_back(test::gradient(trial.elements, rank, static_cast<std::uint64_t>(step)));
    expected.results.push_back(oracle.step(all, trial.items()));
  }
  expected.kept = oracle.kept;
  return expected;
}

// "" if all bits are as they should be.
std::string run(Communicator& communicator, const Trial& trial, const Expected& expected) {
  Compressor compressor(communicator, find_scheme("oktopk"), trial.elements,
                        {.target_items = trial.items(), .parameters = {{"repartition", 2}}});
  for (int step = 0; step < trial.steps; ++step) {
    auto gradient =
        test::gradient(trial.elements, communicator.rank(), static_cast<std::uint64_t>(step));
    compressor.allreduce(gradient);
    if (!same_bits(gradient, expected.results[static_cast<std::size_t>(step)]))
      return fmt::format("{}: the result of step {} differs", trial.text(), step);
  }
  const auto kept = compressor.feedback().kept();
  std::vector<float> all(kept.begin(), kept.end());
  all.resize(trial.elements);  // who has only sent everything has none
  return same_bits(all, expected.kept[static_cast<std::size_t>(communicator.rank())])
             ? ""
             : fmt::format("{}: the residual differs", trial.text());
}

std::vector<std::size_t> lengths(int size) {
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<std::size_t> all{1, ranks - 1, ranks, 1000};
  if (in_full() || size == 3) all.push_back((std::size_t{1} << 20) + 3);
  std::erase(all, 0U);
  return all;
}

TEST(Acceptance, A1_has_the_bits_of_the_oracle_between_threads_and_over_sockets) {
  for (const int size : kSizes)
    for (const auto elements : lengths(size)) {
      const Trial trial{size, elements};
      const auto expected = expect(trial);
      for (const bool tcp : {false, true})
        EXPECT_EQ(test::on_ranks(
                      size, [&](Communicator& c) { return run(c, trial, expected); }, tcp),
                  "")
            << (tcp ? "tcp" : "local");
    }
}

TEST(Acceptance, A1_has_the_bits_of_the_oracle_between_processes) {
  for (const int size : kSizes)
    for (const auto elements : lengths(size)) {
      const Trial trial{size, elements};
      const auto expected = expect(trial);
      for (const auto medium : test::kMedia) {
        const auto told = test::fork_ranks(
            size,
            [&](const test::Seat& seat) {
              auto communicator = seat.join();
              const auto fault = run(communicator, trial, expected);
              if (!fault.empty()) seat.tell(fault);
            },
            medium);
        EXPECT_TRUE(told.empty()) << name(medium) << ": " << told.front();
      }
    }
}

// The gradient of a real model: 27.6 million elements.
TEST(Acceptance, A1_has_the_bits_of_the_oracle_at_full_length) {
  if (!in_full()) GTEST_SKIP() << "only in full runs";
  const Trial trial{3, 27'569'568, 3};
  const auto expected = expect(trial);
  EXPECT_EQ(test::on_ranks(3, [&](Communicator& c) { return run(c, trial, expected); }), "");
}

// 2. All that ever came in is what was handed out and what is left, and a rank's residual is always
// its own: 200 steps, of every scheme that promises it.
std::string conserves(Communicator& communicator, const SchemeInfo& scheme, std::size_t elements,
                      int steps) {
  Compressor compressor(communicator, scheme, elements, {.density = 0.05, .op = ReduceOp::sum});
  std::vector<double> balance(elements), amount(elements);
  for (int step = 0; step < steps; ++step) {
    auto gradient = test::exact_gradient(elements, communicator.rank(), step);
    for (std::size_t i = 0; i < elements; ++i) {
      balance[i] += gradient[i];
      amount[i] += std::abs(gradient[i]);
    }
    compressor.allreduce(gradient);
    if (communicator.rank() == 0)
      for (std::size_t i = 0; i < elements; ++i) balance[i] -= gradient[i];
  }
  const auto kept = compressor.feedback().kept();
  for (std::size_t i = 0; i < kept.size(); ++i) balance[i] -= kept[i];
  communicator.allreduce(std::span(balance));
  communicator.allreduce(std::span(amount));
  for (std::size_t i = 0; i < elements; ++i)  // multiples of 1/64: sums of them are exact
    if (std::abs(balance[i]) > 0)
      return fmt::format("{} on {} ranks: element {} is out by {} of {}", scheme.name,
                         communicator.size(), i, balance[i], amount[i]);
  return "";
}

TEST(Acceptance, A2_conserves_over_200_steps) {
  for (const auto& scheme : schemes()) {
    if (!scheme.conserves || !scheme.feedback) continue;
    for (const int size : kSizes) {
      const std::size_t elements = in_full() ? 20011 : 1001;
      EXPECT_EQ(test::on_ranks(
                    size, [&](Communicator& c) { return conserves(c, scheme, elements, 200); },
                    in_full()),
                "");
    }
  }
}

// 7. All mass in the first 0.1 % of a vector with regions of more than 2^24 elements: owners get
// about equal shares all the same, and pass on blocks of equal length.
TEST(Acceptance, A7_skewed_regions_are_balanced) {
  constexpr std::size_t kElements = 36'000'000, kCorner = kElements / 1000, kItems = 8000;
  for (const int size : {2, 4, 7}) {
    std::vector<std::uint64_t> split(static_cast<std::size_t>(size)), gather = split;
    const auto told = test::on_ranks(size, [&](Communicator& communicator) -> std::string {
      Compressor compressor(communicator, find_scheme("oktopk"), kElements,
                            {.target_items = kItems, .parameters = {{"balance_over", 1}}});
      for (std::uint64_t step = 0; step < 2; ++step) {
        std::vector<float> gradient(kElements);
        const auto some = test::gradient(kCorner, communicator.rank(), step);
        std::copy(some.begin(), some.end(), gradient.begin());
        const auto& report = compressor.allreduce(gradient);
        if (report.items != kItems) return fmt::format("{} items", report.items);
        for (const auto& phase : report.bytes) {
          const auto rank = static_cast<std::size_t>(communicator.rank());
          if (phase.phase == "split") split[rank] = phase.received;
          if (phase.phase == "gather") gather[rank] = phase.received;
        }
      }
      return "";
    });
    EXPECT_EQ(told, "") << size;
    const auto worst = [](const std::vector<std::uint64_t>& bytes) {
      const double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
      return static_cast<double>(*std::max_element(bytes.begin(), bytes.end())) *
             static_cast<double>(bytes.size()) / all;
    };
    EXPECT_LE(worst(split), 1.5) << size;
    EXPECT_LE(worst(gather), 1.0 + static_cast<double>(size) / kItems + 0.02) << size;
  }
}

// 12. A job that goes on with another number of ranks takes its residuals along.
TEST(Acceptance, A12_residuals_survive_a_change_of_the_rank_count) {
  constexpr std::size_t kElements = 5000;
  std::vector<State> states(4);
  const auto& scheme = find_scheme("oktopk");
  test::on_local(4, [&](Communicator& communicator) {
    Compressor compressor(communicator, scheme, kElements, {.density = 0.02});
    for (std::uint64_t step = 0; step < 5; ++step) {
      auto gradient = test::gradient(kElements, communicator.rank(), step);
      compressor.allreduce(gradient);
    }
    compressor.save(states[static_cast<std::size_t>(communicator.rank())]);
  });
  for (const int size : {1, 2, 3}) {
    test::Oracle oracle;
    Vectors all;
    for (int rank = 0; rank < size; ++rank) {
      oracle.kept.push_back(states[static_cast<std::size_t>(rank)].get<float>("residual/"));
      all.push_back(test::gradient(kElements, rank, 5));
    }
    const auto expected = oracle.step(all, 100);
    EXPECT_EQ(test::on_ranks(size,
                             [&](Communicator& communicator) -> std::string {
                               const auto rank = static_cast<std::size_t>(communicator.rank());
                               Compressor compressor(communicator, scheme, kElements,
                                                     {.density = 0.02});
                               compressor.load(states[rank]);
                               auto gradient = all[rank];
                               compressor.allreduce(gradient);
                               return same_bits(gradient, expected) ? "" : "another result";
                             }),
              "")
        << size;
  }
}

std::vector<std::uint32_t> indices_of(const std::vector<bool>& chosen, std::uint64_t begin,
                                      std::uint64_t end) {
  std::vector<std::uint32_t> indices;
  for (auto i = begin; i < end; ++i)
    if (chosen[i]) indices.push_back(static_cast<std::uint32_t>(i));
  return indices;
}

std::size_t message_bytes(const std::vector<bool>& chosen, std::uint64_t begin, std::uint64_t end) {
  const auto indices = indices_of(chosen, begin, end);
  std::vector<std::byte> room(most_item_bytes(indices.size()));
  return encode_items(indices, std::vector<float>(indices.size()),
                      static_cast<std::uint32_t>(begin), room.data());
}

std::uint64_t received(const StepReport& report, std::string_view wanted) {
  for (const auto& phase : report.bytes)
    if (phase.phase == wanted) return phase.received;
  return 0;
}

// 14. A rank receives what the definition says, to the byte: of each other rank its items of this
// rank's region, and of each other owner the sums that stay; together at most 6 k (P-1)/P words.
TEST(Acceptance, A14_bytes_are_those_of_the_items) {
  constexpr std::size_t kElements = 200'000, kItems = 4000;
  for (const int size : kSizes)
    for (const bool tcp : {false, true}) {
      test::Oracle oracle;
      Vectors all;
      for (int rank = 0; rank < size; ++rank) all.push_back(test::gradient(kElements, rank, 0));
      const auto result = oracle.step(all, kItems);
      std::vector<bool> stays(kElements);
      for (std::size_t i = 0; i < kElements; ++i) stays[i] = result[i] != 0;
      const auto told = test::on_ranks(
          size,
          [&](Communicator& communicator) -> std::string {
            Compressor compressor(communicator, find_scheme("oktopk"), kElements,
                                  {.target_items = kItems, .parameters = {{"balance_over", 64}}});
            const auto me = static_cast<std::size_t>(communicator.rank());
            auto gradient = all[me];
            const auto report = compressor.allreduce(gradient);
            State state;
            compressor.save(state);
            const auto regions = state.get<std::uint64_t>("oktopk/regions");  // after two words
            std::uint64_t split = 0, gather = 0;
            for (std::size_t rank = 0; rank < all.size(); ++rank) {
              if (rank == me) continue;
              split += message_bytes(oracle.chosen[rank], regions[2 + me], regions[3 + me]);
              gather += message_bytes(stays, regions[2 + rank], regions[3 + rank]);
            }
            if (received(report, "split") != split || received(report, "gather") != gather)
              return fmt::format("received {} + {} bytes, the items are {} + {}",
                                 received(report, "split"), received(report, "gather"), split,
                                 gather);
            const double bound = 6.0 * kItems * (size - 1) / size * 4;
            return static_cast<double>(split + gather) <= bound ? "" : "beyond the bound";
          },
          tcp);
      EXPECT_EQ(told, "") << size << (tcp ? " tcp" : " local");
    }
}

// 15. A small model learns as well from 2 % of its gradients as from all of them, because of what
// is kept; without, it does not.
class Regression {
 public:
  Regression(int rank, int size) : rank_(rank), size_(size) {}

  /// Mean squared error of the model over all samples of all ranks.
  [[nodiscard]] double loss(const std::vector<float>& model) const {
    double sum = 0;
    for (int rank = 0; rank < size_; ++rank)
      for (std::size_t sample = 0; sample < kSamples; ++sample) {
        const double apart = error(model, rank, sample);
        sum += apart * apart;
      }
    return sum / static_cast<double>(kSamples) / size_;
  }
  [[nodiscard]] std::vector<float> gradient(const std::vector<float>& model) const {
    std::vector<float> gradient(kFeatures);
    for (std::size_t sample = 0; sample < kSamples; ++sample) {
      const double apart = error(model, rank_, sample) / static_cast<double>(kSamples);
      for (std::size_t i = 0; i < kFeatures; ++i)
        gradient[i] += static_cast<float>(apart * feature(rank_, sample, i));
    }
    return gradient;
  }
  static constexpr std::size_t kFeatures = 500, kSamples = 200;

 private:
  // Features of very different scale, as layers have.
  [[nodiscard]] static double feature(int rank, std::size_t sample, std::size_t i) {
    const auto at = (static_cast<std::uint64_t>(rank) * kSamples + sample) * kFeatures + i;
    auto x = (at + 1) * 0x9E3779B97F4A7C15U;
    x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9U;
    const double scale = i % 10 == 0 ? 1 : 0.3;
    return scale * (static_cast<double>(x >> 11) * 0x1p-53 - 0.5);
  }
  [[nodiscard]] static double error(const std::vector<float>& model, int rank, std::size_t sample) {
    double apart = 0;
    for (std::size_t i = 0; i < kFeatures; ++i)
      apart += feature(rank, sample, i) * (model[i] - (i % 7 == 0 ? 1.0 : -0.5));
    return apart;
  }
  int rank_, size_;
};

double trained(std::string_view scheme, bool keeps) {
  double loss = 0;
  test::on_local(2, [&](Communicator& communicator) {
    const Regression task(communicator.rank(), communicator.size());
    std::vector<float> model(Regression::kFeatures);
    const CompressionOptions options{.density = 0.02};
    Compressor compressor(communicator, find_scheme(scheme), model.size(), options);
    State nothing;
    compressor.save(nothing);
    for (int step = 0; step < 400; ++step) {
      auto gradient = task.gradient(model);
      compressor.allreduce(gradient);
      for (std::size_t i = 0; i < model.size(); ++i) model[i] -= 0.5F * gradient[i];
      if (!keeps) compressor.load(nothing);
    }
    if (communicator.rank() == 0) loss = task.loss(model);
  });
  return loss;
}

TEST(Acceptance, A15_learns_as_from_dense_gradients) {
  const Regression task(0, 2);
  const double untrained = task.loss(std::vector<float>(Regression::kFeatures));
  const double dense = trained("dense", true);
  const double sparse = trained("oktopk", true);
  const double forgetful = trained("oktopk", false);
  EXPECT_LT(dense, untrained / 4);
  EXPECT_NEAR(sparse, dense, 0.01 * untrained);
  EXPECT_GT(forgetful, dense + 0.05 * untrained);
}

}  // namespace
}  // namespace sinew
