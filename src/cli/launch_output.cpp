#include "cli/launch_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>

namespace sinew {
namespace {

constexpr std::size_t kLongestLine = 1 << 20;  // a longer one is forwarded in pieces

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto wrote = ::write(fd, text.data(), text.size());
    if (wrote > 0) {
      text.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (errno == EAGAIN) {  // somebody made our standard output non-blocking
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      throw Error(Errc::system, fmt::format("cannot write output: {}", std::strerror(errno)));
    }
  }
}

}  // namespace

RankOutput::~RankOutput() {
  for (const auto& stream : streams_) ::close(stream.fd);
}

RankOutput::Stream RankOutput::open_stream(int rank, bool is_error, int& write_end) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(Errc::system, fmt::format("rank {} gets no pipe for its output: {} (ulimit -n says "
                                          "how many files a process may have open)",
                                          rank, std::strerror(errno)));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  write_end = ends[1];
  return {ends[0], rank, is_error, {}};
}

RankOutput::Ends RankOutput::open(int rank) {
  Ends ends;
  if (label_ == Label::none) return ends;
  streams_.push_back(open_stream(rank, false, ends.out));
  streams_.push_back(open_stream(rank, true, ends.err));
  return ends;
}

void RankOutput::close_ends(const Ends& ends) noexcept {
  if (ends.out >= 0) ::close(ends.out);
  if (ends.err >= 0) ::close(ends.err);
}

void RankOutput::watch(std::vector<pollfd>& fds) const {
  for (const auto& stream : streams_) fds.push_back({stream.fd, POLLIN, 0});
}

void RankOutput::forward() {
  std::erase_if(streams_, [&](Stream& stream) {
    if (drain(stream)) return false;
    if (!stream.partial.empty()) emit(stream, stream.partial);
    ::close(stream.fd);
    return true;
  });
}

void RankOutput::finish() {
  forward();
  for (auto& stream : streams_)
    if (!stream.partial.empty()) emit(stream, std::exchange(stream.partial, {}));
}

bool RankOutput::drain(Stream& stream) {
  std::array<char, 65536> buffer;
  while (true) {
    const auto got = ::read(stream.fd, buffer.data(), buffer.size());
    if (got == 0) return false;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    stream.partial.append(buffer.data(), static_cast<std::size_t>(got));
    emit_lines(stream);
    // Others have something to say as well: a rank that never stops must not be the only one heard.
    if (static_cast<std::size_t>(got) < buffer.size()) return true;
  }
}

void RankOutput::emit_lines(Stream& stream) {
  std::size_t begin = 0;
  for (auto end = stream.partial.find('\n'); end != std::string::npos;
       end = stream.partial.find('\n', begin)) {
    emit(stream, std::string_view(stream.partial).substr(begin, end - begin));
    begin = end + 1;
  }
  stream.partial.erase(0, begin);
  if (stream.partial.size() < kLongestLine) return;
  emit(stream, stream.partial);
  stream.partial.clear();
}

void RankOutput::emit(const Stream& stream, std::string_view line) const {
  if (label_ == Label::json) {
    const nlohmann::ordered_json json{
        {"rank", stream.rank}, {"stream", stream.is_error ? "stderr" : "stdout"}, {"line", line}};
    constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
    write_all(STDOUT_FILENO, json.dump(-1, ' ', false, kReplace) + "\n");
  } else {
    write_all(stream.is_error ? STDERR_FILENO : STDOUT_FILENO,
              fmt::format("[{}] {}\n", stream.rank, line));
  }
}

}  // namespace sinew
