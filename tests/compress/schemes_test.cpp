// Every scheme of the registry that promises to conserve does so, on every rank count and
// transport.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <mutex>

#include "support/gradients.hpp"
#include "support/local_ranks.hpp"
#include "support/scheme_run.hpp"

namespace sinew {
namespace {

// Others add in the order of a tree or of an allreduce: their data must have sums without rounding.
std::vector<float> gradient_for(const SchemeInfo& scheme, std::size_t elements, int rank,
                                int step) {
  return scheme.rank_order ? test::gradient(elements, rank, static_cast<std::uint64_t>(step))
                           : test::exact_gradient(elements, rank, step);
}

// Steps of all ranks, judged together.
class Bench {
 public:
  explicit Bench(int size) : steps_(static_cast<std::size_t>(size)) {}
  void put(int rank, test::Stepped stepped) {
    steps_[static_cast<std::size_t>(rank)] = std::move(stepped);
  }
  [[nodiscard]] const std::vector<test::Stepped>& all() const { return steps_; }

 private:
  std::vector<test::Stepped> steps_;  // a rank writes its own only
};

std::string run_and_judge(const SchemeInfo& scheme, int size, std::size_t elements, int steps,
                          bool tcp) {
  Bench bench(size);
  return test::on_ranks(
      size,
      [&](Communicator& communicator) -> std::string {
        Compressor compressor(communicator, scheme, elements, {.density = 0.05});
        for (int step = 0; step < steps; ++step) {
          bench.put(communicator.rank(),
                    test::take_step(compressor,
                                    gradient_for(scheme, elements, communicator.rank(), step)));
          communicator.barrier();
          const auto fault = test::conservation_fault(bench.all(), ReduceOp::avg);
          communicator.barrier();
          if (!fault.empty())
            return fmt::format("{} on {} ranks, {} elements, step {}: {}", scheme.name, size,
                               elements, step, fault);
        }
        return {};
      },
      tcp);
}

TEST(Schemes, conserve_what_comes_in_bit_for_bit) {
  for (const auto& scheme : schemes()) {
    if (!scheme.conserves || !scheme.feedback) continue;
    for (const int size : {1, 2, 3, 4, 5, 7, 8})
      for (const std::size_t elements :
           {std::size_t{0}, std::size_t{1}, static_cast<std::size_t>(size - 1),
            static_cast<std::size_t>(size), std::size_t{1000}, std::size_t{20011}})
        EXPECT_EQ(run_and_judge(scheme, size, elements, 4, false), "");
  }
}

TEST(Schemes, conserve_over_sockets) {
  for (const auto& scheme : schemes()) {
    if (!scheme.conserves || !scheme.feedback) continue;
    for (const int size : {2, 3, 8}) EXPECT_EQ(run_and_judge(scheme, size, 5000, 3, true), "");
  }
}

TEST(Schemes, conserve_over_200_steps) {
  for (const auto& scheme : schemes()) {
    if (!scheme.conserves || !scheme.feedback) continue;
    EXPECT_EQ(run_and_judge(scheme, 3, 3001, 200, false), "");
  }
}

TEST(Schemes, are_found_by_name_with_a_suggestion) {
  EXPECT_EQ(find_scheme("topka").name, "topka");
  try {
    find_scheme("topkb");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("topka"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace sinew
