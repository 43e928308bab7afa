#include "mpi/rank_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "runtime/mpi_plugin.hpp"
#include "support/exact_data.hpp"

namespace sinew::test {

using namespace std::chrono_literals;
using Numbers = std::vector<std::int32_t>;

namespace {

Numbers numbers(std::size_t count, int salt) {
  Numbers data(count);
  std::iota(data.begin(), data.end(), salt * 1000);
  return data;
}

// Algorithms that need shared memory do not fit and are left out.
bool fits(const Trial& trial, int size) {
  return trial.algorithm->fits({0, size, 0, 1, {}}, {}) && !trial.shared_buffers;
}

}  // namespace

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return fmt::format("{}: {}", name(error.code()), error.what());
  }
  return "no error";
}

Lines data() {
  Lines wrong;
  auto communicator = join();
  if (communicator.transport() != "mpi") wrong.emplace_back("not over mpi");
  // Many ranks on few cores take long: every third trial then, unless there is time.
  const char* full = std::getenv("SINEW_FULL");
  const std::size_t stride = communicator.size() <= 4 || full != nullptr ? 1 : 3;
  std::size_t tried = 0;
  for (const auto& trial : sweep(communicator.size())) {
    if (!fits(trial, communicator.size()) || ++tried % stride != 0) continue;
    if (auto what = attempt(communicator, trial); !what.empty()) wrong.push_back(std::move(what));
  }
  if (tried < 100) wrong.push_back(fmt::format("only {} trials", tried));
  return wrong;
}

// Longer than frames, than chunks and than all that is in flight, and not a multiple of any.
Lines large() {
  Lines wrong;
  auto communicator = join();
  for (const auto& algorithm : algorithms())
    for (const std::size_t count : {std::size_t{2049}, std::size_t{70'003}, std::size_t{300'007}}) {
      Trial trial{&algorithm, count, DType::f32, ReduceOp::sum, 0, true, false, false};
      if (!fits(trial, communicator.size()) || algorithm.collective == Collective::alltoall)
        continue;
      if (auto what = attempt(communicator, trial); !what.empty()) wrong.push_back(std::move(what));
    }
  return wrong;
}

// Two ranks on each of two hosts: all know it, and so do the groups they make.
Lines hosts() {
  Lines wrong;
  const auto expect = [&](Transport& transport, const std::vector<int>& wanted) {
    const auto node_of = transport.node_of();
    if (std::vector<int>(node_of.begin(), node_of.end()) == wanted) return;
    wrong.push_back(
        fmt::format("hosts [{}], not [{}]", fmt::join(node_of, " "), fmt::join(wanted, " ")));
  };
  const auto all = join_mpi("", process_environment(), Clock::now() + 60s);
  expect(*all, {0, 0, 1, 1});
  const int apart[] = {1, 2}, together[] = {2, 3};
  const auto subset = [&](std::span<const int> members, std::string_view label) {
    return all->subset(members, label, Clock::now() + 60s);
  };
  if (std::ranges::find(apart, all->rank()) != std::end(apart))
    expect(*subset(apart, "apart"), {0, 1});
  if (std::ranges::find(together, all->rank()) != std::end(together))
    expect(*subset(together, "together"), {});
  auto communicator = join();
  Trial trial{&find_algorithm(Collective::allreduce, "ring"), 70'003, DType::f32, ReduceOp::sum};
  if (auto what = attempt(communicator, trial); !what.empty()) wrong.push_back(std::move(what));
  return wrong;
}

Lines messages() {
  Lines wrong;
  auto c = join();
  const int size = c.size(), right = (c.rank() + 1) % size, left = (c.rank() + size - 1) % size;
  const auto expect = [&](const Numbers& got, const Numbers& wanted, std::string_view what) {
    if (got != wanted) wrong.push_back(fmt::format("rank {}: {}", c.rank(), what));
  };
  // All sent before anything is asked for, and asked for in another order.
  std::vector<Numbers> out;
  std::vector<Request> requests;
  for (int tag = 0; tag < 5; ++tag)
    out.push_back(numbers(100 + static_cast<std::size_t>(tag) * 90'000, c.rank() * 10 + tag));
  for (std::uint32_t tag = 0; tag < 5; ++tag)
    requests.push_back(c.isend(std::span<const std::int32_t>(out[tag]), right, tag));
  for (const std::uint32_t tag : {3U, 0U, 4U, 2U, 1U}) {
    Numbers in(out[tag].size());
    c.recv(std::span(in), left, tag);
    expect(in, numbers(in.size(), left * 10 + static_cast<int>(tag)), "by tag");
  }
  c.wait_all(requests);
  // Many short ones: more than the sender has slots, in order, with collectives in between.
  std::vector<Numbers> many;
  requests.clear();
  for (int i = 0; i < 100; ++i) many.push_back(numbers(1 + static_cast<std::size_t>(i) * 30, i));
  for (const auto& each : many)
    requests.push_back(c.isend(std::span<const std::int32_t>(each), right, 9));
  c.barrier();
  for (const auto& each : many) {
    Numbers in(each.size());
    c.recv(std::span(in), left, 9);
    expect(in, each, "in order");
  }
  c.wait_all(requests);
  const auto mine = numbers(2 << 20, c.rank());  // 8 MiB
  Numbers theirs(mine.size());
  c.sendrecv(std::span<const std::int32_t>(mine), right, std::span(theirs), left, 5);
  expect(theirs, numbers(theirs.size(), left), "both ways");
  // Of whoever sends: each rank's in order.
  std::vector<int> next(static_cast<std::size_t>(size));
  for (int i = 0; i < 10 && c.rank() != 0; ++i) {
    const auto data = numbers(20'000, c.rank() * 100 + i);
    c.send(std::span<const std::int32_t>(data), 0, 7);
  }
  for (int i = 0; i < 10 * (size - 1) && c.rank() == 0; ++i) {
    Numbers in(20'000);
    int source = -1;
    c.wait(c.irecv_any(std::as_writable_bytes(std::span(in)), source, 7));
    if (source <= 0 || source >= size) {
      wrong.push_back(fmt::format("from rank {} of {}", source, size));
      break;
    }
    expect(in, numbers(in.size(), source * 100 + next[static_cast<std::size_t>(source)]++),
           "of anyone");
  }
  return wrong;
}

Lines groups() {
  Lines wrong;
  auto all = join();
  const int rank = all.rank(), size = all.size();
  auto half = all.split(rank % 2, -rank);
  auto twin = all.dup();
  const auto sum_in = [](Communicator& c, std::int64_t mine) {
    c.allreduce(std::span(&mine, 1));
    return mine;
  };
  std::int64_t of_half = 0, of_all = 0;
  int members = 0;
  for (int r = 0; r < size; ++r) {
    of_all += r + 1;
    if (r % 2 != rank % 2) continue;
    of_half += r + 1;
    ++members;
  }
  if (half.size() != members) wrong.push_back(fmt::format("a half of {}", half.size()));
  if (half.rank() != (size - 1 - rank) / 2) wrong.push_back(fmt::format("rank {}", half.rank()));
  auto quarter = half.split(half.rank() % 2);
  for (int repeat = 0; repeat < 50; ++repeat) {
    if (sum_in(half, rank + 1) != of_half) wrong.emplace_back("sum of a half");
    if (sum_in(twin, rank + 1) != of_all) wrong.emplace_back("sum of the twin");
    if (sum_in(quarter, 1) != quarter.size()) wrong.emplace_back("sum of a quarter");
  }
  // Both at once, finished in another order than begun.
  std::vector<std::int64_t> a(40'000, 1), b(100, 2);
  const auto call = [](std::vector<std::int64_t>& data) {
    return Call{.collective = Collective::allreduce,
                .dtype = DType::i64,
                .input = data.data(),
                .output = data.data(),
                .count = data.size()};
  };
  const auto first = all.start(call(a)), second = twin.start(call(b));
  twin.wait(second);
  all.wait(first);
  if (a.back() != size || b.back() != 2 * size) wrong.emplace_back("two at once");
  return wrong;
}

// Each thread has a communicator of its own.
Lines threads() {
  Lines wrong;
  auto all = join();
  auto twin = all.dup();
  std::string errors[2];
  const auto work = [&](Communicator& c, int which) {
    for (int i = 0; i < 300 && errors[which].empty(); ++i) {
      std::vector<std::int32_t> data(static_cast<std::size_t>(1 + i * 37 % 5000), c.rank() + which);
      c.allreduce(std::span(data));
      const int wanted = c.size() * (c.size() - 1) / 2 + which * c.size();
      if (data.back() != wanted || data.front() != wanted) errors[which] = "wrong sum";
    }
  };
  std::thread other([&] {
    if (const auto text = error_of([&] { work(twin, 1); }); text != "no error") errors[1] = text;
  });
  if (const auto text = error_of([&] { work(all, 0); }); text != "no error") errors[0] = text;
  other.join();
  for (const auto& error : errors)
    if (!error.empty()) wrong.push_back(error);
  return wrong;
}

// More communicators than an MPI has room for at a time, some with messages nobody received: what
// is left of one must not turn up in another.
Lines many() {
  Lines wrong;
  auto all = join();
  for (int i = 0; i < 2200; ++i) {
    auto one = all.dup();
    const Numbers stray(static_cast<std::size_t>(1 + i % 3 * 1000), -1);
    if (i % 4 == 0) one.isend(std::span<const std::int32_t>(stray), (one.rank() + 1) % one.size());
    std::int64_t sum = 1;
    one.allreduce(std::span(&sum, 1));
    if (sum != one.size()) wrong.push_back(fmt::format("sum {} in number {}", sum, i));
    if (i % 4 != 1) continue;
    Numbers sent = numbers(7, i), got(7);
    one.sendrecv(std::span<const std::int32_t>(sent), (one.rank() + 1) % one.size(), std::span(got),
                 (one.rank() + one.size() - 1) % one.size());
    if (got != sent) wrong.push_back(fmt::format("a stray message in number {}", i));
  }
  return wrong;
}

// Of the transport and the library; what MPI does inside is its own affair.
Lines allocations() {
  Lines wrong;
  auto c = join();
  for (const auto& algorithm : algorithms())
    for (const std::size_t count : {std::size_t{33}, std::size_t{3000}, std::size_t{200'000}}) {
      if (!algorithm.fits({0, c.size(), 0, 1, {}}, {})) continue;
      const bool empty = algorithm.collective == Collective::barrier;
      std::vector<float> in(count * static_cast<std::size_t>(c.size())), out(in);
      const Call call{.collective = algorithm.collective,
                      .input = in.data(),
                      .output = out.data(),
                      .count = empty ? 0 : count,
                      .options = {.algorithm = algorithm.name}};
      for (int i = 0; i < 3; ++i) c.run(call);
      const auto before = allocations_so_far();
      for (int i = 0; i < 20; ++i) c.run(call);
      if (const auto made = allocations_so_far() - before; made != 0)
        wrong.push_back(fmt::format("{} {} of {}: {} allocations", name(algorithm.collective),
                                    algorithm.name, count, made));
    }
  return wrong;
}

}  // namespace sinew::test
