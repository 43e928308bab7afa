#include "support/two_hosts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>

#include "support/program.hpp"

namespace sinew::test {
namespace {

// What a shell says to a script, or "".
std::string refusal_of(const std::string& script) {
  const auto ran = run({"sh", "-ec", script});
  return ran.status == 0 ? "" : fmt::format("{}{}", ran.out, ran.err);
}

// A process in a network of its own, once that is made; -1 when it cannot be.
pid_t hold_network() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char made = ::unshare(CLONE_NEWNET) == 0 ? 'y' : 'n';
    (void)!::write(ends[1], &made, 1);
    while (made == 'y') ::pause();
    ::_exit(0);
  }
  ::close(ends[1]);
  char made = 'n';
  (void)!::read(ends[0], &made, 1);
  ::close(ends[0]);
  if (made == 'y') return pid;
  ::waitpid(pid, nullptr, 0);
  return -1;
}

}  // namespace

TwoHosts::TwoHosts() : holder_(hold_network()) {
  if (holder_ < 0) {
    missing_ = "no second network here";
    return;
  }
  missing_ = refusal_of(
      fmt::format("ip link add veth0 type veth peer name veth0 netns {0}\n"
                  "ip address add {1}/24 dev veth0\n"
                  "ip link set veth0 up\n"
                  "nsenter -t {0} -n sh -ec 'ip link set lo up; ip address add {2}/24 dev veth0; "
                  "ip link set veth0 up'",
                  holder_, address(0), address(1)));
}

TwoHosts::~TwoHosts() {
  if (holder_ < 0) return;
  ::kill(holder_, SIGKILL);
  ::waitpid(holder_, nullptr, 0);
}

void TwoHosts::enter(int host) const {
  if (host == 0) return;
  const int space = ::open(fmt::format("/proc/{}/ns/net", holder_).c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || ::setns(space, CLONE_NEWNET) != 0) throw std::runtime_error("setns");
  ::close(space);
}

std::string TwoHosts::address(int host) { return fmt::format("10.77.0.{}", host + 1); }

std::string TwoHosts::cut() {
  return refusal_of(
      "nft add table inet cut\n"
      "nft 'add chain inet cut in { type filter hook input priority 0; }'\n"
      "nft 'add chain inet cut out { type filter hook output priority 0; }'\n"
      "nft 'add rule inet cut in iifname veth0 drop; add rule inet cut out oifname veth0 drop'");
}

}  // namespace sinew::test
