#include "transport/rendezvous/pmi.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

constexpr std::size_t kLongestLine = 4096;  // managers allow values of 1024 bytes
constexpr auto kKey = "sinew-meeting";

/// One process's side of the conversation.
class Pmi {
 public:
  Pmi(int descriptor, Deadline deadline) : descriptor_(descriptor), deadline_(deadline) {
    ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
    kvs_ = ask("cmd=get_my_kvsname", "my_kvsname")["kvsname"];
  }
  Pmi(const Pmi&) = delete;
  Pmi& operator=(const Pmi&) = delete;

  void put(std::string_view key, std::string_view value) {
    ask(fmt::format("cmd=put kvsname={} key={} value={}", kvs_, key, value), "put_result");
  }
  std::string get(std::string_view key) {
    return ask(fmt::format("cmd=get kvsname={} key={}", kvs_, key), "get_result")["value"];
  }
  void barrier() { ask("cmd=barrier_in", "barrier_out"); }
  // Without it the manager takes the end of the process for a crash.
  void finish() { ask("cmd=finalize", "finalize_ack"); }

 private:
  PmiWords ask(const std::string& request, std::string_view answer) {
    write(request + "\n");
    auto words = parse_pmi(read_line());
    const auto rc = words.find("rc");
    if (words["cmd"] != answer || (rc != words.end() && rc->second != "0"))
      fail(fmt::format("answered '{}' with rc '{}' to '{}'", words["cmd"],
                       rc == words.end() ? "" : rc->second, request.substr(0, request.find(' '))));
    return words;
  }

  void write(std::string_view text) const {
    while (!text.empty()) {
      const auto wrote = ::send(descriptor_, text.data(), text.size(), MSG_NOSIGNAL);
      if (wrote < 0 && errno != EINTR && errno != EAGAIN) fail(std::strerror(errno));
      if (wrote > 0) text.remove_prefix(static_cast<std::size_t>(wrote));
    }
  }

  std::string read_line() {
    while (true) {
      if (const auto end = buffer_.find('\n'); end != std::string::npos) {
        auto line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      if (buffer_.size() > kLongestLine) fail("sent a line without an end");
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
      pollfd entry{descriptor_, POLLIN, 0};
      const int ready =
          ::poll(&entry, 1, static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000)));
      if (ready == 0 && left <= 0)
        throw Error(Errc::timeout,
                    "the process manager (PMI) did not answer in time: not all "
                    "ranks have called sinew::connect()");
      if (ready <= 0) continue;
      std::array<char, 1024> part{};
      const auto got = ::recv(descriptor_, part.data(), part.size(), 0);
      if (got == 0) fail("closed the connection");
      if (got < 0 && errno != EINTR && errno != EAGAIN) fail(std::strerror(errno));
      if (got > 0) buffer_.append(part.data(), static_cast<std::size_t>(got));
    }
  }

  [[noreturn]] static void fail(std::string_view how) {
    throw Error(Errc::system,
                fmt::format("the process manager (PMI) {}; set SINEW_RENDEZVOUS and SINEW_TOKEN "
                            "to do without it",
                            how));
  }

  int descriptor_;
  Deadline deadline_;
  std::string buffer_, kvs_;
};

}  // namespace

PmiWords parse_pmi(std::string_view line) {
  PmiWords words;
  for (const auto word : split(line, ' ')) {
    const auto equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    words.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return words;
}

std::string share_by_pmi(int descriptor, int rank, std::string_view value, Deadline deadline) {
  Pmi pmi(descriptor, deadline);
  if (rank == 0) pmi.put(kKey, value);
  pmi.barrier();
  auto shared = pmi.get(kKey);
  pmi.finish();
  return shared;
}

std::string pmi_manager(int descriptor) {
  // The manager made the pair of sockets before it started us.
  ucred manager{};
  socklen_t bytes = sizeof manager;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &manager, &bytes) != 0 || manager.pid <= 0)
    return "";
  return fmt::format("pmi {}", manager.pid);
}

}  // namespace sinew
