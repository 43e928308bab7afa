// What the board promises to those who write and to those who sleep.
#include "transport/board.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace sinew {
namespace {

using namespace std::chrono_literals;

struct Rank {
  Rank(Segment& segment, int rank) : bell(segment, rank), board(segment, bell, rank) {
    board.begin({1, 0xABCD}, 8);
  }
  Doorbell bell;
  Board board;
};

SegmentOptions small_slots(std::uint32_t slots) {
  return {.slot_bytes = 64 << 10, .slots = slots, .lane_slot_bytes = 64, .arena_bytes = 4096};
}

TEST(Board, a_window_never_touches_the_one_before_it) {
  for (const std::uint32_t slots : {2U, 3U, 4U}) {
    Segment segment(2, small_slots(slots));
    Rank rank(segment, 0);
    std::mt19937 random(slots);
    const std::byte* last_begin = nullptr;
    const std::byte* last_end = nullptr;
    for (int i = 0; i < 10'000; ++i) {
      const std::size_t bytes = 64 * (1 + random() % (i % 3 == 0 ? 1024 : 200));
      const auto* begin = rank.board.slots(bytes).of(0);
      const auto* end = begin + bytes;
      EXPECT_TRUE(end <= last_begin || last_end <= begin) << "window " << i;
      EXPECT_GE(begin, segment.slot(0, 0));
      EXPECT_LE(end, segment.slot(1, 0)) << "into the slots of rank 1";
      last_begin = begin;
      last_end = end;
    }
  }
}

TEST(Board, windows_of_equal_requests_are_equal_on_all_ranks) {
  Segment segment(3, small_slots(2));
  Rank first(segment, 0), second(segment, 1);
  for (const std::size_t bytes : {64, 40'000, 30'000, 64, 65'536, 8'192, 128})
    EXPECT_EQ(first.board.slots(bytes).of(2), second.board.slots(bytes).of(2));
}

TEST(Board, long_windows_take_all_slots_in_turn) {
  Segment segment(1, small_slots(4));
  Rank rank(segment, 0);
  std::set<const std::byte*> seen;
  for (int i = 0; i < 8; ++i) seen.insert(rank.board.slots(64 << 10).of(0));
  EXPECT_EQ(seen.size(), 4U);
}

// It was seen there while we were in the operation before: that must not count as having looked.
TEST(Board, a_rank_ahead_of_us_in_another_operation_is_found_out) {
  Segment segment(2, small_slots(2));
  Rank slow(segment, 0), ahead(segment, 1);
  const auto last = slow.board.first() + 8;
  ahead.board.post(last);
  ahead.board.begin({2, 0x1234}, 8);
  ahead.board.post(ahead.board.first() + 1);
  EXPECT_TRUE(slow.board.reached(1, last));
  EXPECT_EQ(slow.board.mismatch(), -1);
  slow.board.begin({2, 0x5678}, 8);
  EXPECT_FALSE(slow.board.reached(1, slow.board.first() + 1));
  EXPECT_EQ(slow.board.mismatch(), 1);
}

// A sleeper that is woken before all are there would go back to sleep, and each of those wakes
// costs more than the exchange.
TEST(Doorbell, wakes_whoever_waits_for_everyone_only_when_the_last_has_come) {
  Segment segment(3, small_slots(2));
  Rank sleeper(segment, 0), second(segment, 1), third(segment, 2);
  const auto position = sleeper.board.first() + 1;
  const int others[] = {1, 2};
  EXPECT_FALSE(sleeper.board.all_reached(others, position));
  sleeper.bell.arm(sleeper.board.take_want());
  auto& rings = segment.bell(0).bell;
  const auto before = rings.load();
  second.board.post(position);
  EXPECT_EQ(rings.load(), before);
  third.board.post(position);
  EXPECT_EQ(rings.load(), before + 1);
  EXPECT_TRUE(sleeper.board.all_reached(others, position));
}

TEST(Doorbell, wakes_whoever_waits_for_one_when_that_one_has_come) {
  Segment segment(3, small_slots(2));
  Rank sleeper(segment, 0), second(segment, 1), third(segment, 2);
  const auto position = sleeper.board.first() + 1;
  const int other[] = {2};
  EXPECT_FALSE(sleeper.board.all_reached(other, position));
  sleeper.bell.arm(sleeper.board.take_want());
  auto& rings = segment.bell(0).bell;
  const auto before = rings.load();
  second.board.post(position);
  EXPECT_EQ(rings.load(), before);
  third.board.post(position);
  EXPECT_EQ(rings.load(), before + 1);
}

TEST(Doorbell, two_different_wants_are_wants_of_anything) {
  Segment segment(3, small_slots(2));
  Rank sleeper(segment, 0);
  const int one[] = {1}, all[] = {1, 2};
  EXPECT_FALSE(sleeper.board.all_reached(one, 5));
  EXPECT_FALSE(sleeper.board.all_reached(all, 5));
  EXPECT_EQ(sleeper.board.take_want(), Want::anything());
  EXPECT_EQ(sleeper.board.take_want(), Want::anything()) << "nothing is known of what it waits for";
}

// Posters that come at the same moment must not each leave the wake to the other.
TEST(Doorbell, no_wake_is_lost_between_posters_that_come_together) {
  constexpr int kRounds = 3000;
  constexpr int kRanks = 4;
  Segment segment(kRanks, small_slots(2));
  std::atomic<int> overslept{0};
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r)
    threads.emplace_back([&, r] {
      Rank rank(segment, r);
      std::vector<int> others;
      for (int other = 0; other < kRanks; ++other)
        if (other != r) others.push_back(other);
      for (std::uint32_t round = 1; round <= kRounds; ++round) {
        rank.board.begin({round, 0xABCD}, 0);
        const auto position = rank.board.first() + 1;
        rank.board.post(position);
        while (!rank.board.all_reached(others, position)) {
          rank.bell.arm(rank.board.take_want());
          if (rank.board.all_reached(others, position)) break;
          const auto began = Clock::now();
          rank.bell.sleep(2s);
          if (Clock::now() - began > 1s) ++overslept;
        }
        rank.bell.disarm();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(overslept, 0);
}

}  // namespace
}  // namespace sinew
