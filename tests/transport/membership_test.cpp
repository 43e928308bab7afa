// Who goes on after a failure, in every order in which things can happen.
#include "transport/membership.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "support/every_order.hpp"

namespace sinew {
namespace {

RankSet set_of(std::initializer_list<int> ranks, int size) {
  RankSet set(size);
  for (const int rank : ranks) set.insert(rank);
  return set;
}

TEST(MayGoOn, takes_all_who_are_not_surely_dead_or_more_than_half) {
  const auto may = [](std::initializer_list<int> members, std::initializer_list<int> gone,
                      int size) {
    return may_go_on(set_of(members, size), set_of(gone, size), size);
  };
  EXPECT_TRUE(may({0}, {1}, 2));         // the other is dead
  EXPECT_FALSE(may({0}, {}, 2));         // the other is silent, and may think the same
  EXPECT_TRUE(may({0, 1}, {}, 3));       // two of three
  EXPECT_FALSE(may({0, 1}, {}, 4));      // half of them: the other half might go on
  EXPECT_TRUE(may({0, 1}, {2}, 4));      // not if one of them is dead
  EXPECT_FALSE(may({0, 1}, {2, 3}, 5));  // two of the three who are left, but two of five
  EXPECT_TRUE(may({4}, {0, 1, 2, 3}, 5));
  EXPECT_FALSE(may({}, {}, 1));
}

// Any two sets that may go on, as seen with any deaths, share a rank, unless one set is all dead.
TEST(MayGoOn, never_lets_two_groups_go_on) {
  for (int size = 1; size <= 6; ++size) {
    const int sets = 1 << size;
    const auto to_set = [&](int bits) {
      RankSet set(size);
      set.words()[0] = static_cast<std::uint64_t>(bits);
      return set;
    };
    // The second group decides later, so that it knows of at least as many deaths.
    for (int dead_early = 0; dead_early < sets; ++dead_early)
      for (int first = 1; first < sets; ++first) {
        if ((first & dead_early) != 0 || !may_go_on(to_set(first), to_set(dead_early), size))
          continue;
        for (int dead = 0; dead < sets; ++dead)
          for (int second = 1; second < sets; ++second) {
            if ((dead & dead_early) != dead_early || (second & (dead | first)) != 0) continue;
            if (!may_go_on(to_set(second), to_set(dead), size)) continue;
            EXPECT_EQ(first & ~dead, 0) << first << " and " << second << " of " << size;
          }
      }
  }
}

TEST(Notice, survives_its_encoding_and_refuses_other_bytes) {
  const Notice notice{Notice::Kind::promise, 77, 12, set_of({1}, 70), set_of({0, 69}, 70)};
  const auto bytes = encode(notice);
  EXPECT_EQ(decode_notice(bytes, 70), notice);
  EXPECT_EQ(decode_notice(bytes, 200), std::nullopt);
  EXPECT_EQ(decode_notice(bytes, 69), std::nullopt);  // rank 69 is none of 69
  EXPECT_EQ(decode_notice(std::span(bytes).first(bytes.size() - 1), 70), std::nullopt);
  auto unknown = bytes;
  unknown[0] = std::byte{kNoticeKinds};
  EXPECT_EQ(decode_notice(unknown, 70), std::nullopt);
}

const bool kFull = std::getenv("SINEW_FULL") != nullptr;

void expect_sound(const test::Trouble& trouble) {
  const auto tried = test::try_every_order(trouble);
  fmt::print("{} ranks, {} crashes, {} suspicions{}: {} states, {} endings\n", trouble.size,
             trouble.crashes, trouble.suspicions, trouble.all_here ? ", all here" : "",
             tried.states, tried.endings);
  EXPECT_EQ(tried.fault, "");
  EXPECT_GT(tried.decided, 0U);
}

TEST(EveryOrder, with_crashes_all_survivors_decide_the_same) {
  expect_sound({.size = 2, .crashes = 1});
  expect_sound({.size = 3, .crashes = 1});
  expect_sound({.size = 3, .crashes = 2, .all_here = true});
  expect_sound({.size = 4, .crashes = 1, .all_here = true});
  if (kFull) expect_sound({.size = 4, .crashes = 2, .rounds = 8, .all_here = true});
}

TEST(EveryOrder, with_suspicions_right_or_wrong_nobody_decides_otherwise) {
  expect_sound({.size = 2, .crashes = 1, .suspicions = 2});
  expect_sound({.size = 3, .crashes = 0, .suspicions = 2, .rounds = 3, .all_here = true});
  expect_sound({.size = 3, .crashes = 1, .suspicions = 1, .rounds = 3, .all_here = true});
  if (kFull)
    expect_sound({.size = 3, .crashes = 1, .suspicions = 2, .rounds = 2, .all_here = true});
}

// The checker must object when the protocol is broken.
TEST(EveryOrder, finds_what_is_wrong_with_broken_protocols) {
  const auto expect_fault = [](const std::string& why, const test::Trouble& trouble) {
    const auto tried = test::try_every_order(trouble);
    fmt::print("{}: found after {} states: {}\n", why, tried.states, tried.fault);
    EXPECT_NE(tried.fault, "") << why;
    EXPECT_NE(tried.fault, "too many states") << why;
  };
  expect_fault(
      "anyone may go on alone",
      {.size = 2, .crashes = 0, .suspicions = 2, .rule = [](const RankSet&, const RankSet&, int) {
         return true;
       }});
  expect_fault(
      "promises forget what was joined",
      {.size = 3, .crashes = 0, .suspicions = 2, .all_here = true, .spoil = [](Notice& notice) {
         notice.accepted = 0;
       }});
  expect_fault("ranks believe in deaths that they have not seen",
               {.size = 3, .crashes = 1, .all_here = true, .spoil = [](Notice& notice) {
                  if (notice.kind == Notice::Kind::ask) notice.gone = RankSet(3);
                }});
  expect_fault("questions get lost",
               {.size = 3, .crashes = 1, .all_here = true, .spoil = [](Notice& notice) {
                  if (notice.kind == Notice::Kind::promise) notice.ballot = 0;
                }});
}

}  // namespace
}  // namespace sinew
