// Reading other ranks' own memory: what a rank has given up on is not read as if nothing had
// happened, and schedules that would read the wrong place are refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include <sinew/verify.hpp>
#include "schedule/builder.hpp"
#include "support/exact_data.hpp"
#include "support/fork_ranks.hpp"
#include "support/local_ranks.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// The root waits until its data have been read, in vain, and has its buffer back. Who comes later
// must not take what is there then for the message.
TEST(ByReference, who_comes_after_the_owner_gave_up_gets_an_error) {
  for (const auto collective : {Collective::broadcast, Collective::allgather, Collective::allreduce,
                                Collective::alltoall}) {
    const auto wrong = test::fork_ranks(
        3,
        [&](const test::Seat& seat) {
          auto c = seat.join(name(collective));
          std::vector<float> in(50'000, 7), out(3 * in.size());
          const bool late = c.rank() == 2;
          if (late) std::this_thread::sleep_for(1500ms);
          const bool in_place = collective == Collective::broadcast;
          // The table that says where uneven parts lie is gone by then, too.
          const std::vector<std::size_t> counts{20'000, 10'000, 20'000}, mine(3, counts[seat.rank]);
          const bool uneven = collective == Collective::alltoall;
          try {
            c.run({.collective = collective,
                   .input = in.data(),
                   .output = in_place ? in.data() : out.data(),
                   .count = uneven ? 0 : in.size(),
                   .counts = uneven ? std::span(counts) : std::span<const std::size_t>(),
                   .recv_counts = uneven ? std::span(mine) : std::span<const std::size_t>(),
                   .options = {.algorithm = "pull", .timeout = 300ms}});
            seat.tell(fmt::format("{}: rank {} was told nothing", name(collective), c.rank()));
          } catch (const Error& error) {
            if (error.code() != Errc::timeout && !late)
              seat.tell(fmt::format("rank {}: {}", c.rank(), error.what()));
          }
          std::fill(in.begin(), in.end(), -1.0F);
          std::this_thread::sleep_for(2s);
        },
        test::Medium::shm);
    EXPECT_TRUE(wrong.empty()) << wrong.front();
  }
}

// Far longer than a block of what is reduced, the last of which is short.
TEST(ByReference, long_results_are_exact) {
  std::vector<test::Trial> trials;
  for (const auto collective : {Collective::broadcast, Collective::allgather, Collective::alltoall,
                                Collective::reduce_scatter, Collective::allreduce})
    trials.push_back({&find_algorithm(collective, "pull"), 4'200'017, DType::f32, ReduceOp::sum, 1,
                      false, false, false});
  auto uneven = trials[2];  // alltoall
  uneven.ragged = true;
  trials.push_back(uneven);
  const auto wrong = test::fork_ranks(
      3,
      [&](const test::Seat& seat) {
        auto c = seat.join();
        for (const auto& trial : trials)
          if (const auto what = test::attempt(c, trial); !what.empty()) seat.tell(what);
      },
      test::Medium::shm);
  EXPECT_TRUE(wrong.empty()) << wrong.front();
}

World pulled(Collective collective) { return make_world(find_algorithm(collective, "pull"), 2); }

TEST(ByReference, an_installed_schedule_is_run_where_its_maps_hold) {
  test::on_local(2, [](Communicator& c) {
    auto world = pulled(Collective::allgather);
    for (auto& schedule : world.ranks) schedule.name = "mine";
    c.install(world);
    std::vector<float> in(1000, static_cast<float>(c.rank() + 1)), out(2000);
    c.allgather(std::span<const float>(in), std::span(out), {.algorithm = "mine"});
    EXPECT_EQ(out.front() + out.back(), 3);
    const std::size_t counts[] = {1000, 500};
    in.resize(counts[c.rank()]);
    try {
      c.allgatherv(std::span<const float>(in), std::span(out).first(1500), counts,
                   {.algorithm = "mine"});
      ADD_FAILURE() << "parts of different sizes are read";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("parts of equal size"), std::string::npos);
    }
  });
}

TEST(ByReference, what_is_published_in_pieces_is_not_read_as_one) {
  World world{Collective::allgather, 0, {}};
  for (int rank = 0; rank < 2; ++rank) {
    const auto mine = static_cast<std::uint32_t>(2 * rank), other = 2 - mine;
    Builder b("pieces", rank, 2, 2, 4);
    b.board_chunks(2);
    b.publish(in(0), 0);
    b.publish(in(1), 1);
    b.copy(in(0, 2), out(mine, 2));
    b.next_round();
    b.gather_copy(1 - rank, 0, out(other, 2));
    b.next_round();
    b.publish(in(0, 0), 0);
    b.next_round();
    b.wait_for_all();
    world.ranks.push_back(b.finish(4));
    world.ranks.back().by_reference = true;
  }
  EXPECT_TRUE(verify(world).ok());
  const auto errors = test::try_local(2, [&](Communicator& c) {
    c.install(world);
    std::vector<float> mine(20), all(40);
    c.allgather(std::span<const float>(mine), std::span(all), {.algorithm = "pieces"});
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error.has_value());
    EXPECT_NE(std::string(error->what()).find("publishes by reference in several steps"),
              std::string::npos)
        << error->what();
  }
}

}  // namespace
}  // namespace sinew
