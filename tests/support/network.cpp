#include "support/network.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sinew::test {
namespace {

void write_file(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!::write(file, text.data(), text.size());
  ::close(file);
}

}  // namespace

bool leave(int spaces) {
  if (::unshare(spaces) == 0) return true;
  const auto uid = ::geteuid(), gid = ::getegid();
  if (::unshare(CLONE_NEWUSER | spaces) != 0) return false;
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", fmt::format("0 {} 1", uid));
  write_file("/proc/self/gid_map", fmt::format("0 {} 1", gid));
  return true;
}

namespace {

bool raise_loopback() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool up = ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
  ::close(socket);
  return up;
}

std::vector<std::string> own_folders() {
  std::vector<std::string> folders{"/dev/shm"};
  if (!std::string_view(SINEW_PROGRAM).starts_with("/tmp/")) folders.emplace_back("/tmp");
  return folders;
}

bool mount_own_folders() {
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  for (const auto& folder : own_folders())
    if (::mount("none", folder.c_str(), "tmpfs", 0, "mode=1777") != 0) return false;
  return true;
}

enum class Own : std::uint8_t { network, network_and_folders };

std::string attempt(Own own, const std::function<std::string()>& body) {
  const bool folders = own == Own::network_and_folders;
  try {
    if (!leave(folders ? CLONE_NEWNET | CLONE_NEWNS : CLONE_NEWNET) || !raise_loopback() ||
        (folders && !mount_own_folders()))
      return fmt::format("skip: no network{} of its own here ({})", folders ? " and folders" : "",
                         std::strerror(errno));
    return body();
  } catch (const std::exception& error) {
    return fmt::format("threw: {}", error.what());
  }
}

std::string in_own(Own own, const std::function<std::string()>& body) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto text = attempt(own, body);
    (void)!::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (status != 0) text += fmt::format("; ended with status {}", status);
  return text;
}

std::string open_sockets() {
  // TIME_WAIT, and FIN_WAIT2 that no process has open any more (it is in no file system): the
  // kernel's own, which it forgets after a while.
  constexpr std::string_view kTimeWait = "06", kFinWait2 = "05", kNoFile = "0";
  std::string found;
  for (const auto* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    for (std::getline(file, line); std::getline(file, line);) {
      std::istringstream words(line);
      std::string slot, local, remote, state, queues, timer, retries, user, timeout, inode;
      words >> slot >> local >> remote >> state >> queues >> timer >> retries >> user >> timeout >>
          inode;
      if (state != kTimeWait && !(state == kFinWait2 && inode == kNoFile))
        found += fmt::format("socket {} to {}, state {}; ", local, remote, state);
    }
  }
  std::ifstream file("/proc/self/net/unix");
  std::string line;
  for (std::getline(file, line); std::getline(file, line);) found += "Unix socket " + line + "; ";
  return found;
}

}  // namespace

std::string in_own_network(const std::function<std::string()>& body) {
  return in_own(Own::network, body);
}

std::string in_own_place(const std::function<std::string()>& body) {
  return in_own(Own::network_and_folders, body);
}

namespace {

std::string left_now() {
  std::string found;
  std::ifstream children(fmt::format("/proc/self/task/{}/children", ::getpid()));
  for (std::string pid; children >> pid;) found += fmt::format("process {}; ", pid);
  for (const auto& folder : own_folders())
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      found += entry.path().string() + "; ";
  return found + open_sockets();
}

}  // namespace

std::string left_behind(std::chrono::milliseconds patience) {
  // The kernel goes on closing sockets for a moment after their process was killed.
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!left_now().empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return left_now();
}

}  // namespace sinew::test
