// After a call has been bound, repeating it allocates nothing: operator new is counted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "runtime/trial.hpp"
#include "support/local_ranks.hpp"

namespace {
thread_local std::size_t allocations = 0;  // of this rank

void* counted(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* counted(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  const auto line = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(line, (bytes + line - 1) / line * line)) return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, alignment);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace sinew {
namespace {

std::size_t allocations_of(Communicator& communicator, const Call& call, int repeats) {
  communicator.run(call);
  communicator.barrier();
  const auto before = allocations;
  for (int i = 0; i < repeats; ++i) communicator.run(call);
  return allocations - before;
}

void expect_none(int size, std::size_t count, int repeats, bool tcp = false, bool tls = false) {
  test::Complaints wrong(size);
  const auto body = [&](Communicator& communicator) {
    const auto elements = count * static_cast<std::size_t>(size);
    std::vector<float> in(elements + 1), out(elements + 1);
    SharedBuffer shared;
    if (!tcp) shared = communicator.alloc_shared((elements + 1) * sizeof(float));
    for (const auto& algorithm : algorithms()) {
      if (!algorithm.fits({0, size, 0, 1, {}}, tcp ? Capabilities{} : kOneHost)) continue;
      const bool in_arena = algorithm.name == "shared";
      const Call call{.collective = algorithm.collective,
                      .input = in_arena ? shared.as<float>().data() : in.data(),
                      .output = in_arena ? shared.as<float>().data() : out.data(),
                      .count = algorithm.collective == Collective::barrier ? 0 : count,
                      .options = {.algorithm = algorithm.name}};
      if (const auto made = allocations_of(communicator, call, repeats); made != 0)
        wrong.add(communicator.rank(),
                  fmt::format("{} {} of {}: {} allocations on rank {}", name(algorithm.collective),
                              algorithm.name, count, made, communicator.rank()));
    }
    // The choice made without a name is remembered as well, and calls that alternate.
    const Call one{.collective = Collective::allreduce,
                   .input = in.data(),
                   .output = in.data(),
                   .count = count};
    const Call other{.collective = Collective::allgather,
                     .input = in.data(),
                     .output = out.data(),
                     .count = count};
    for (const auto& call : {one, other})
      for (int i = 0; i <= kNeutralTrialCalls; ++i) communicator.run(call);
    const auto before = allocations;
    for (int i = 0; i < repeats; ++i) communicator.run(i % 2 == 0 ? one : other);
    if (allocations != before) wrong.add(communicator.rank(), "alternating calls allocate");
  };
  test::LocalSetup setup;
  setup.tcp = tcp;
  setup.tls = tls;
  test::on_local(size, body, setup);
  EXPECT_EQ(wrong.text(), "");
}

TEST(Allocations, are_counted_by_this_test) {
  const auto before = allocations;
  std::vector<int> some(10);
  EXPECT_EQ(allocations, before + 1);
  EXPECT_EQ(some.size(), 10U);
}

TEST(Allocations, are_none_in_a_thousand_repeated_calls_of_every_algorithm) {
  expect_none(2, 33, 1000);
}

TEST(Allocations, are_none_when_calls_are_sliced_or_ranks_share_cores) {
  expect_none(2, 300'000, 3);
  expect_none(3, 1000, 50);
}

TEST(Allocations, are_none_in_calls_that_are_started_and_waited_for) {
  test::Complaints wrong(2);
  std::atomic<int> started{0};
  test::on_local(2, [&](Communicator& communicator) {
    std::vector<float> data(100);
    const Call call{.collective = Collective::allreduce,
                    .input = data.data(),
                    .output = data.data(),
                    .count = 100};
    const auto several = [&](auto&& requests) {
      for (auto& request : requests) request = communicator.start(call);
      ++started;
      communicator.wait_all(requests);
    };
    // Each rank once has them all in its queue, while the other has not begun.
    for (int first = 0; first < 2; ++first) {
      while (communicator.rank() != first && started != 2 * first + 1) std::this_thread::yield();
      several(std::array<Request, 32>{});
      while (started < 2 * first + 2) std::this_thread::yield();
    }
    const auto before = allocations;
    for (int i = 0; i < 1000; ++i) several(std::array<Request, 3>{});
    if (const auto made = allocations - before; made != 0)
      wrong.add(communicator.rank(), fmt::format("{} allocations", made));
  });
  EXPECT_EQ(wrong.text(), "");
}

TEST(Allocations, are_none_when_trials_begin_again) {
  test::Complaints wrong(2);
  test::LocalSetup setup;
  setup.cores = 2;
  test::on_local(
      2,
      [&](Communicator& communicator) {
        std::vector<float> in(1000), out(2000);
        const Call call{.collective = Collective::allgather,
                        .input = in.data(),
                        .output = out.data(),
                        .count = in.size()};
        for (int i = 0; i <= kNeutralTrialCalls; ++i) communicator.run(call);
        const auto measured = [&] { return communicator.explain(call).front().measured_us; };
        const auto first = measured();
        const auto before = allocations;
        for (std::uint32_t i = 0; i < 2 * kTrialsAgainEvery; ++i) communicator.run(call);
        if (const auto made = allocations - before; made != 0)
          wrong.add(communicator.rank(), fmt::format("{} allocations", made));
        // To the nanosecond, as a mean of several.
        if (measured() == first) wrong.add(communicator.rank(), "it did not begin again");
      },
      setup);
  EXPECT_EQ(wrong.text(), "");
}

// Both while a trial's turns are of one kind and of several, which are looked up each time.
TEST(Allocations, are_none_once_trials_are_over) {
  for (const bool tcp : {false, true}) {
    test::Complaints wrong(2);
    test::LocalSetup setup;
    setup.options.trial_calls = 4;
    setup.tcp = tcp;
    const auto body = [&](Communicator& communicator) {
      std::vector<float> data(100), other(200);
      const Call calls[] = {{.collective = Collective::allreduce,
                             .input = data.data(),
                             .output = data.data(),
                             .count = 100},
                            {.collective = Collective::allgather,
                             .input = data.data(),
                             .output = other.data(),
                             .count = 100}};
      for (int i = 0; i < 12; ++i)
        for (const auto& call : calls) communicator.run(call);
      for (const auto& call : calls)
        if (communicator.explain(call).front().measured_us == 0)
          wrong.add(communicator.rank(), "a trial is not over");
      const auto before = allocations;
      for (int i = 0; i < 200; ++i) communicator.run(calls[i % 2]);
      for (int i = 0; i < 200; ++i) communicator.run(calls[0]);
      if (allocations != before)
        wrong.add(communicator.rank(), fmt::format("{} allocations", allocations - before));
    };
    test::on_local(2, body, setup);
    EXPECT_EQ(wrong.text(), "");
  }
}

TEST(Allocations, are_none_over_sockets) {
  expect_none(2, 33, 200, true);
  expect_none(3, 300'000, 3, true);
  expect_none(3, 300'000, 2, true, true);
}

}  // namespace
}  // namespace sinew
