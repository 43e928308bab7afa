// What a process manager answers.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include <sinew/error.hpp>
#include "require.hpp"
#include "transport/rendezvous/pmi.hpp"

using namespace sinew;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  for (const auto& [key, value] : parse_pmi(text))
    require(key.find('=') == std::string::npos && value.find(' ') == std::string::npos, "words");
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "sockets");
  require(::send(ends[1], data, bytes, 0) == static_cast<ssize_t>(bytes), "answers fit a socket");
  ::shutdown(ends[1], SHUT_WR);
  try {
    const auto value = share_by_pmi(ends[0], bytes % 2 == 0 ? 0 : 1, "mine",
                                    Clock::now() + std::chrono::seconds(5));
    require(value.size() < bytes, "a value is a part of an answer");
  } catch (const Error& error) {
    require(error.code() == Errc::system, "the end of the answers is noticed");
  }
  ::close(ends[0]);
  ::close(ends[1]);
  return 0;
}
