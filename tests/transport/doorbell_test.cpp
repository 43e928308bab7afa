// Waking a rank that sleeps on its socket, because it waits for other sockets too.
#include "transport/doorbell.hpp"

#include <gtest/gtest.h>
#include <poll.h>

namespace sinew {
namespace {

bool is_readable(int descriptor, int milliseconds) {
  pollfd entry{descriptor, POLLIN, 0};
  return poll(&entry, 1, milliseconds) == 1;
}

TEST(Doorbell, wakes_a_sleeper_by_its_socket) {
  const Segment segment(3, {});
  Doorbell sleeper(segment, 0), same_kind(segment, 1), on_bell(segment, 2);
  ASSERT_GE(same_kind.socket(), 0);
  const int socket = sleeper.socket();
  ASSERT_GE(socket, 0);
  EXPECT_EQ(sleeper.socket(), socket);
  for (Doorbell* other : {&same_kind, &on_bell}) {
    sleeper.arm(Want::anything());
    EXPECT_FALSE(is_readable(socket, 0));
    other->ring(0);
    EXPECT_TRUE(is_readable(socket, 1000));
    sleeper.answer();
    EXPECT_FALSE(is_readable(socket, 0));
    other->ring(0);  // awake: costs nobody anything
    EXPECT_FALSE(is_readable(socket, 0));
  }
}

TEST(Doorbell, a_segment_of_its_own_has_names_of_its_own) {
  const Segment one(2, {}), other(2, {});
  Doorbell in_one(one, 0), in_other(other, 0);
  EXPECT_GE(in_one.socket(), 0);
  EXPECT_GE(in_other.socket(), 0);
}

TEST(Doorbell, where_the_name_is_taken_there_is_no_socket) {
  const Segment segment(2, {});
  Doorbell first(segment, 0);
  ASSERT_GE(first.socket(), 0);
  EXPECT_EQ(Doorbell(segment, 0).socket(), -1);
}

}  // namespace
}  // namespace sinew
