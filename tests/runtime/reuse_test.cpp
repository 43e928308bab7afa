// Buffers are the caller's again as soon as a call returns, however late the others are, and
// whatever reads them where they lie.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"

namespace sinew {
namespace {

std::int32_t value(int rank, std::size_t element) {
  return rank * 1'000'003 + static_cast<std::int32_t>(element);
}

// What rank `me` must find in its output, for the collectives that only copy.
std::int32_t expected(Collective collective, std::size_t count, int me, int root,
                      std::size_t element) {
  const auto mine = static_cast<std::size_t>(me) * count;
  const auto from = static_cast<int>(element / count);
  switch (collective) {
    case Collective::broadcast:
      return value(root, element);
    case Collective::scatter:
      return value(root, mine + element);
    case Collective::alltoall:
      return value(from, mine + element % count);
    default:
      return value(from, element % count);  // gather and allgather
  }
}

std::string reuse_at_once(Communicator& c, const Algorithm& algorithm, std::size_t count,
                          int salt) {
  const int size = c.size(), me = c.rank(), root = salt % size;
  const auto all = count * static_cast<std::size_t>(size);
  std::vector<std::int32_t> in(all), out(all, -1);
  for (std::size_t i = 0; i < all; ++i) in[i] = value(me, i);
  // Somebody is late, somebody else each time.
  if (me == (salt / 2) % size) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  c.run({.collective = algorithm.collective,
         .dtype = DType::i32,
         .root = root,
         .input = in.data(),
         .output = out.data(),
         .count = count,
         .options = {.algorithm = algorithm.name}});
  const auto result = out;
  std::fill(in.begin(), in.end(), -2);
  std::fill(out.begin(), out.end(), -3);
  if (algorithm.collective == Collective::gather && me != root) return "";
  const bool short_output =
      algorithm.collective == Collective::broadcast || algorithm.collective == Collective::scatter;
  for (std::size_t i = 0; i < (short_output ? count : all); ++i)
    if (result[i] != expected(algorithm.collective, count, me, root, i))
      return fmt::format("rank {} of {}: {} {} of {}: element {} is {}", me, size,
                         name(algorithm.collective), algorithm.name, count, i, result[i]);
  return "";
}

std::string all_reuse_at_once(Communicator& c) {
  int salt = 0;
  for (const auto& algorithm : algorithms()) {
    if (reduces(algorithm.collective) || algorithm.collective == Collective::barrier ||
        !algorithm.fits({0, c.size(), 0, 1, {}}, {c.transport() != "tcp", false}))
      continue;
    for (const std::size_t count : {10UL, 20'000UL, 20'001UL, 20'000UL})
      if (const auto wrong = reuse_at_once(c, algorithm, count, ++salt); !wrong.empty())
        return wrong;
  }
  return "";
}

TEST(Reuse, of_buffers_right_after_a_call_harms_nobody_over_local) {
  for (const int size : {2, 4, 7}) {
    test::Complaints wrong(size);
    test::on_local(size, [&](Communicator& c) { wrong.add(c.rank(), all_reuse_at_once(c)); });
    EXPECT_EQ(wrong.text(), "");
  }
}

TEST(Reuse, of_buffers_right_after_a_call_harms_nobody_over_shm_and_tcp) {
  const auto body = [](const test::Seat& seat) {
    auto communicator = seat.join();
    if (const auto what = all_reuse_at_once(communicator); !what.empty()) seat.tell(what);
    communicator.barrier();
  };
  for (const auto medium : test::kMedia)
    for (const int size : {2, 4, 7}) {
      const auto wrong = test::fork_ranks(size, body, medium);
      EXPECT_TRUE(wrong.empty()) << name(medium) << ": " << wrong.front();
    }
}

}  // namespace
}  // namespace sinew
