#include "measure/launch.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>

namespace sinew::bench {
namespace {

/// In the child: dies with the parent, is alone in its process group, writes to the output file.
void settle(pid_t parent, int signal_on_orphan, int output_fd) noexcept {
  ::prctl(PR_SET_PDEATHSIG, signal_on_orphan);
  if (::getppid() != parent) ::_exit(1);  // it was gone before the line above took effect
  ::setpgid(0, 0);                        // Ctrl-C is the parent's to handle
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  if (output_fd >= 0) {
    ::dup2(output_fd, STDOUT_FILENO);
    ::dup2(output_fd, STDERR_FILENO);
  }
}

template <class Body>
pid_t fork_child(int signal_on_orphan, int output_fd, Body body) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child > 0) return child;
  settle(parent, signal_on_orphan, output_fd);
  body();
  ::_exit(0);
}

/// A rank's life in a child. Its failure is the child's end.
void live_as(int rank, const Launch& launch, const std::function<void(Control&)>& body) {
  try {
    Control control(launch.control, rank);
    body(control);
  } catch (const std::exception& error) {
    ::dprintf(STDERR_FILENO, "rank %d: %s\n", rank, error.what());
    ::_exit(1);
  }
}

std::string replaced(std::string word, const Launch& launch, int rank) {
  const std::pair<const char*, std::string> values[] = {{"{control}", launch.control},
                                                        {"{ranks}", std::to_string(launch.ranks)},
                                                        {"{rank}", std::to_string(rank)}};
  for (const auto& [key, value] : values) {
    if (const auto at = word.find(key); at != std::string::npos) {
      word.replace(at, std::strlen(key), value);
    }
  }
  return word;
}

pid_t spawn(const std::vector<std::string>& words, const Launch& launch, int rank) {
  std::vector<std::string> line;
  for (const auto& word : words) line.push_back(replaced(word, launch, rank));
  std::vector<char*> arguments;
  for (auto& word : line) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // SIGTERM, not SIGKILL: a launcher has ranks and files of its own to clear away.
  return fork_child(SIGTERM, launch.output_fd, [&] {
    ::execvp(arguments[0], arguments.data());
    ::dprintf(STDERR_FILENO, "%s: %s\n", arguments[0], std::strerror(errno));
    ::_exit(127);
  });
}

}  // namespace

Launcher fork_ranks(std::function<void(Control&)> body) {
  return [body = std::move(body)](const Launch& launch, std::vector<pid_t>& children) {
    for (int rank = 0; rank < launch.ranks; ++rank)
      children.push_back(
          fork_child(SIGKILL, launch.output_fd, [&] { live_as(rank, launch, body); }));
  };
}

Launcher fork_threads(std::function<void(Control&)> body) {
  return [body = std::move(body)](const Launch& launch, std::vector<pid_t>& children) {
    children.push_back(fork_child(SIGKILL, launch.output_fd, [&] {
      std::vector<std::thread> threads;
      for (int rank = 0; rank < launch.ranks; ++rank)
        threads.emplace_back([&, rank] { live_as(rank, launch, body); });
      for (auto& thread : threads) thread.join();
    }));
  };
}

Launcher spawn_once(std::vector<std::string> words) {
  return [words = std::move(words)](const Launch& launch, std::vector<pid_t>& children) {
    children.push_back(spawn(words, launch, 0));
  };
}

Launcher spawn_each(std::vector<std::string> words) {
  return [words = std::move(words)](const Launch& launch, std::vector<pid_t>& children) {
    for (int rank = 0; rank < launch.ranks; ++rank) children.push_back(spawn(words, launch, rank));
  };
}

}  // namespace sinew::bench
