// Ranks that do not agree, come late, or not at all: named to the others, within their deadline.
#include <fmt/format.h>

#include <csignal>
#include <functional>
#include <thread>

#include "mpi/rank_checks.hpp"
#include "runtime/mpi_plugin.hpp"
#include "support/mismatches.hpp"

namespace sinew::test {

using namespace std::chrono_literals;

namespace {

void expect_text(Lines& wrong, const std::string& text, std::string_view part) {
  if (text.find(part) == std::string::npos)
    wrong.push_back(fmt::format("'{}' is not in: {}", part, text));
}

}  // namespace

Lines mismatched() {
  Lines wrong;
  auto control = join();  // brings all ranks together between cases
  for (const std::size_t count : {std::size_t{8}, std::size_t{50'000}, std::size_t{400'000}})
    for (std::size_t i = 0; i < mismatches().size(); ++i) {
      control.barrier();
      auto communicator = join(10s);
      const auto& each = mismatches()[i];
      const int odd = static_cast<int>(i + count) % communicator.size();
      const auto ending = provoke(communicator, each, count, communicator.rank() == odd);
      if (const auto what = complaint(each, ending, odd); !what.empty())
        wrong.push_back(fmt::format("{} of {}: {}: {}", each.what, count, what, ending));
    }
  return wrong;
}

Lines lengths() {
  Lines wrong;
  auto c = join(10s);
  if (c.size() < 2) return wrong;
  const std::vector<float> in(100, 1);
  std::vector<float> out(200);
  // Rank 1 sends 10 elements where rank 0 expects 11.
  std::vector<std::size_t> sends(static_cast<std::size_t>(c.size()), 10), receives(sends);
  if (c.rank() == 0) receives[1] = 11;
  const auto text = error_of([&] {
    c.alltoallv(std::span(in), sends, std::span(out), receives);
    c.barrier();
  });
  expect_text(wrong, text, "mismatch: ");
  expect_text(wrong, text, "40 bytes where rank 0 expects 44");
  return wrong;
}

// The last rank comes too late: the others say so, and it finds the communicator poisoned.
Lines late() {
  Lines wrong;
  auto control = join();
  auto c = join(300ms);
  const int last = c.size() - 1;
  c.barrier();
  if (c.rank() == last) std::this_thread::sleep_for(600ms);
  const auto text = error_of([&] { c.barrier(); });
  if (c.rank() != last) {
    expect_text(wrong, text, "timeout: ");
    expect_text(wrong, text, fmt::format("rank {} was not heard to enter it", last));
  } else if (text == "no error") {
    wrong.emplace_back("the late rank was let through");
  }
  control.barrier();
  return wrong;
}

// A rank whose communicator is gone is named at once, long before the deadline.
Lines left() {
  Lines wrong;
  auto control = join();
  {
    auto c = join(20s);
    c.barrier();
    if (c.rank() != 0) {
      const auto begun = Clock::now();
      const auto text = error_of([&] { c.barrier(); });
      expect_text(wrong, text, "rank 0 has left after operation #1");
      if (Clock::now() - begun > 5s) wrong.emplace_back("noticed too late");
    }
  }
  control.barrier();
  return wrong;
}

// A subset that not all come for is given up at the deadline, and the missing are named.
Lines alone() {
  Lines wrong;
  auto control = join();
  const auto transport = join_mpi("", process_environment(), Clock::now() + 10s);
  if (transport->rank() == 0 && transport->size() > 1) {
    const int members[] = {0, 1};
    const auto text = error_of([&] { transport->subset(members, "pair", Clock::now() + 200ms); });
    expect_text(wrong, text, "timeout: ");
    expect_text(wrong, text, "ranks that did not come: 1");
  }
  control.barrier();
  return wrong;
}

// A rank is away, computing, in the middle of a long operation, while the others give up. It finds
// out when it comes back.
Lines absent() {
  Lines wrong;
  auto control = join();
  auto c = join(300ms);
  const int last = c.size() - 1;
  std::vector<float> data(1'000'000, 1);
  const auto text = error_of([&] {
    const auto request = c.start({.collective = Collective::allreduce,
                                  .input = data.data(),
                                  .output = data.data(),
                                  .count = data.size(),
                                  .options = {.algorithm = "ring"}});
    if (c.rank() == last) std::this_thread::sleep_for(1s);
    c.wait(request);
  });
  if (text == "no error") wrong.emplace_back("an operation that was given up went well");
  control.barrier();
  return wrong;
}

// What a rank sent before it left arrives; what it never sent is an error at once, for whoever
// waits and for whoever only tests.
Lines unread() {
  Lines wrong;
  auto control = join();
  for (const bool only_tests : {false, true}) {
    auto c = join(20s);
    if (c.rank() == 1) {
      const std::vector<std::int32_t> data(3000, 7);
      for (const std::uint32_t tag : {4U, 5U}) c.send(std::span<const std::int32_t>(data), 0, tag);
    }
    if (c.rank() != 0) continue;
    for (const std::uint32_t tag : {5U, 4U}) {
      std::vector<std::int32_t> in(3000);
      c.recv(std::span(in), 1, tag);
      if (in.front() != 7 || in.back() != 7) wrong.emplace_back("wrong data");
    }
    std::vector<std::int32_t> more(10);
    const auto request = c.irecv(std::span(more), 1, 9);
    const auto text = error_of([&] {
      while (only_tests && !c.test(request)) {
      }
      c.wait(request);
    });
    expect_text(wrong, text, "from rank 1 with tag 9 cannot finish: rank 1 has left");
  }
  control.barrier();
  return wrong;
}

Lines dies() {
  auto c = join();
  c.barrier();
  if (c.rank() == 1) ::raise(SIGKILL);
  c.barrier();
  return {"a barrier without a rank"};
}

}  // namespace sinew::test
