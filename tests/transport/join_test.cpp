// Joining over shm: ranks that are done at once, that are missing, that do not belong.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include <sinew/error.hpp>

#include "support/fork_ranks.hpp"
#include "transport/shm/shm.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// A rank may be gone as soon as it has joined; the others must have noticed it before that.
TEST(Join, ranks_that_leave_at_once_trouble_nobody) {
  for (int trial = 0; trial < 20; ++trial) {
    const auto wrong = test::fork_ranks(4, [](const test::Seat& seat) { (void)seat.join(); });
    ASSERT_TRUE(wrong.empty()) << fmt::format("{}", fmt::join(wrong, "\n"));
  }
}

TEST(Join, names_the_ranks_that_do_not_come) {
  ShmJoin join;
  join.rendezvous = "sinew-test-join-" + std::to_string(getpid());
  join.size = 3;
  try {
    (void)join_shm(join, Clock::now() + 50ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::timeout);
    EXPECT_NE(std::string(error.what()).find("1, 2 of 3"), std::string::npos) << error.what();
  }
}

TEST(Join, refuses_a_rank_that_is_not_one_of_them) {
  ShmJoin join;
  join.rendezvous = "sinew-test";
  join.rank = 3;
  join.size = 3;
  EXPECT_THROW((void)join_shm(join, Clock::now() + 50ms), Error);
  join.rank = 0;
  join.rendezvous = std::string(200, 'x');
  EXPECT_THROW((void)join_shm(join, Clock::now() + 50ms), Error);
}

// A process of another release, played by hand: its first words have another number.
TEST(Join, another_release_is_told_on_both_sides) {
  ShmJoin join;
  join.rendezvous = "sinew-test-release-" + std::to_string(getpid());
  join.size = 2;
  std::thread stranger([&] {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, join.rendezvous.data(), join.rendezvous.size());
    const auto bytes =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + join.rendezvous.size());
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    while (::connect(socket, reinterpret_cast<const sockaddr*>(&address), bytes) != 0) usleep(1000);
    const std::string words("sinew-7\0and what else there may be", 35);
    EXPECT_EQ(::send(socket, words.data(), words.size(), 0), std::ssize(words));
    std::array<char, 512> answer{};
    EXPECT_GT(::recv(socket, answer.data() + 4, answer.size() - 4, 0), 0);
    EXPECT_NE(std::string(answer.data() + 8).find("another release of sinew"), std::string::npos);
    ::close(socket);
  });
  try {
    (void)join_shm(join, Clock::now() + 10s);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("another release of sinew"), std::string::npos);
  }
  stranger.join();
}

}  // namespace
}  // namespace sinew
