#include "support/program.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <sstream>
#include <stdexcept>

namespace sinew::test {
namespace {

std::array<int, 2> open_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  return ends;
}

// A file without a name, since a pipe could block the writer.
int input_file(const std::string& text) {
  const int fd = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 || ::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("cannot write the input");
  ::lseek(fd, 0, SEEK_SET);
  return fd;
}

}  // namespace

Program::Program(const std::vector<std::string>& words, const std::string& input) {
  std::vector<char*> arguments;
  auto copy = words;
  for (auto& word : copy) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int in = input_file(input);
  const auto out = open_pipe(), err = open_pipe();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    ::dup2(in, STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(in);
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Program::~Program() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

bool Program::read_some() {
  if (out_ < 0 && err_ < 0) return false;
  std::array<pollfd, 2> fds{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  ::poll(fds.data(), fds.size(), -1);
  const auto take = [](pollfd ready, int& fd, std::string& text) {
    if (fd < 0 || ready.revents == 0) return;
    std::array<char, 65536> buffer{};
    const auto got = ::read(fd, buffer.data(), buffer.size());
    if (got > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      ::close(fd);
      fd = -1;
    }
  };
  take(fds[0], out_, ran_.out);
  take(fds[1], err_, ran_.err);
  return true;
}

bool Program::wait_for(const std::string& text, int times) {
  const auto seen = [&] {
    int count = 0;
    for (auto at = ran_.out.find(text); at != std::string::npos; at = ran_.out.find(text, at + 1))
      ++count;
    return count;
  };
  while (seen() < times)
    if (!read_some()) return false;
  return true;
}

Ran Program::finish() {
  while (read_some()) {
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  ran_.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return ran_;
}

Ran run(const std::vector<std::string>& words, const std::string& input) {
  return Program(words, input).finish();
}

Ran sinew(std::vector<std::string> arguments, const std::string& input) {
  arguments.insert(arguments.begin(), SINEW_PROGRAM);
  return run(arguments, input);
}

void expect_error(const std::vector<std::string>& arguments, int status, const std::string& part) {
  const auto ran = sinew(arguments);
  EXPECT_EQ(ran.status, status) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(ran.err.starts_with("sinew: ")) << ran.err;
  EXPECT_EQ(lines_of(ran.err).size(), 1U) << ran.err;
  EXPECT_TRUE(has(ran.err, part)) << ran.err;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (const auto& line : lines_of(text)) widest = std::max(widest, line.size());
  return widest;
}

}  // namespace sinew::test
