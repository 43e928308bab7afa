#include "transport/shm/gather.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <sinew/error.hpp>
#include "transport/cores.hpp"
#include "transport/rendezvous/socket.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kMagic{"sinew-1\0", 8};  // the number is the version

/// What a rank says when it joins. Fixed size; nothing is allocated from what it contains.
struct Introduction {
  char magic[8] = {};
  std::int32_t rank = -1;
  std::int32_t size = 0;
  cpu_set_t cpus = own_cpus();  // all ranks' together are the cores of the group
};
/// What rank 0 answers: with the segment's descriptor when everyone is there, else with a reason.
struct Welcome {
  std::int32_t cores = 0;
  char reason[252] = {};
};

constexpr auto kLook = 50ms;  // how often a rank that joins looks whether the others are alive

// Looks up now and then, whether waiting is still of use.
bool wait_readable(const Socket& socket, Deadline deadline, const Check& check) {
  while (true) {
    if (check) check();
    const auto until = check ? std::min(deadline, Clock::now() + kLook) : deadline;
    if (wait_for(socket, POLLIN, until)) return true;
    if (Clock::now() >= deadline) return false;
  }
}

[[noreturn]] void system_error(std::string_view what) {
  throw Error(Errc::system, fmt::format("{}: {}", what, std::strerror(errno)));
}

std::pair<sockaddr_un, socklen_t> address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A leading zero byte: the name lives in the kernel, not in a folder.
  const auto bytes = name.size();
  if (bytes == 0 || bytes > sizeof(address.sun_path) - 1)
    throw Error(Errc::invalid_argument, fmt::format("rendezvous '{}' must have 1 to {} characters",
                                                    name, sizeof(address.sun_path) - 1));
  std::memcpy(address.sun_path + 1, name.data(), bytes);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes)};
}

Socket make_socket() {
  Socket socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) system_error("socket");
  return socket;
}

/// Whether the other end belongs to the same user; its process id if so.
int trusted_pid(const Socket& socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return -1;
  return peer.uid == geteuid() ? peer.pid : -1;
}

/// Without a descriptor it is a refusal.
bool send_welcome(const Socket& socket, const Welcome& welcome, int descriptor) {
  Welcome payload = welcome;
  iovec part{&payload, sizeof payload};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  return sendmsg(socket.get(), &message, MSG_NOSIGNAL) >= 0;
}

int receive_welcome(const Socket& socket, Welcome& welcome, int rank) {
  iovec part{&welcome, sizeof welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto bytes = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  if (bytes == sizeof welcome && welcome.cores == 0) {
    welcome.reason[sizeof welcome.reason - 1] = 0;
    throw Error(Errc::invalid_argument, fmt::format("rendezvous: {}", welcome.reason),
                {.rank = rank, .peer = 0});
  }
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (bytes != sizeof welcome || header == nullptr || header->cmsg_type != SCM_RIGHTS)
    throw Error(Errc::peer_lost, "rendezvous: rank 0 closed the connection before all had joined",
                {.rank = rank, .peer = 0});
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
  return descriptor;
}

/// Rank 0's view of who has come.
class Gathering {
 public:
  explicit Gathering(const ShmJoin& join)
      : join_(join),
        segment_(std::make_shared<Segment>(join.size, join.options)),
        members_(static_cast<std::size_t>(join.size)) {
    segment_->status(0).pid.store(getpid());
  }

  [[nodiscard]] bool is_complete() const { return missing().empty(); }

  [[nodiscard]] std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < join_.size; ++rank)
      if (members_[static_cast<std::size_t>(rank)].get() < 0) ranks.push_back(rank);
    return ranks;
  }

  void admit(Socket socket, Deadline deadline) {
    const int pid = socket.get() >= 0 ? trusted_pid(socket) : -1;
    Introduction hello;
    if (pid < 0 || !wait_readable(socket, std::min(deadline, Clock::now() + 1s), join_.check))
      return;
    const auto bytes = recv(socket.get(), &hello, sizeof hello, MSG_TRUNC);
    const std::string_view magic(hello.magic, kMagic.size());
    if (bytes < std::ssize(kMagic) || !magic.starts_with(kMagic.substr(0, 6)))
      return;  // a stranger
    if (const auto why = objection(hello, magic, bytes); !why.empty()) {
      const auto text = fmt::format("process {} {}", pid, why);
      refuse(socket, text);
      fail(Errc::invalid_argument, text);
    }
    segment_->status(hello.rank).pid.store(pid);
    CPU_OR(&cpus_, &cpus_, &hello.cpus);
    members_[static_cast<std::size_t>(hello.rank)] = std::move(socket);
  }

  /// Tells everybody who has come why it has come in vain.
  [[noreturn]] void fail(Errc code, const std::string& why) const {
    for (const auto& member : members_)
      if (member.get() >= 0) refuse(member, why);
    throw Error(code, fmt::format("rendezvous: {}", why), {.rank = 0});
  }

  Gathered welcome() const {
    Welcome welcome;
    welcome.cores = join_.cores > 0 ? join_.cores : within_quota(CPU_COUNT(&cpus_));
    for (std::size_t rank = 1; rank < members_.size(); ++rank)
      if (!send_welcome(members_[rank], welcome, segment_->descriptor()))
        fail(Errc::peer_lost, fmt::format("rank {} died while it was welcomed", rank));
    return {segment_, welcome.cores};
  }

 private:
  [[nodiscard]] std::string objection(const Introduction& hello, std::string_view magic,
                                      ssize_t bytes) const {
    if (magic != kMagic || bytes != sizeof hello)
      return "is of another release of sinew; all ranks must run the same";
    if (hello.size != join_.size)
      return fmt::format(
          "says it is rank {} of {}, but this job has {} ranks; start all with the "
          "same number",
          hello.rank, hello.size, join_.size);
    if (hello.rank < 1 || hello.rank >= join_.size)
      return fmt::format("says it is rank {}, but this job has ranks 1 to {} beside rank 0",
                         hello.rank, join_.size - 1);
    if (members_[static_cast<std::size_t>(hello.rank)].get() >= 0)
      return fmt::format("says it is rank {}, but so does process {}; each rank joins once",
                         hello.rank, segment_->status(hello.rank).pid.load());
    return "";
  }

  static void refuse(const Socket& socket, const std::string& why) {
    Welcome welcome;
    std::memcpy(welcome.reason, why.data(), std::min(why.size(), sizeof welcome.reason - 1));
    send_welcome(socket, welcome, -1);
  }

  const ShmJoin& join_;
  std::shared_ptr<Segment> segment_;
  std::vector<Socket> members_;  // by rank
  cpu_set_t cpus_ = own_cpus();
};

}  // namespace

cpu_set_t own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}

Gathered gather_ranks(const ShmJoin& join, Deadline deadline) {
  const Socket listener = make_socket();
  const auto [address, bytes] = address_of(join.rendezvous);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
    throw Error(errno == EADDRINUSE ? Errc::invalid_argument : Errc::system,
                fmt::format("rendezvous '{}' is taken: another job uses it, or another process "
                            "says that it is rank 0 ({})",
                            join.rendezvous, std::strerror(errno)));
  if (listen(listener.get(), join.size) != 0) system_error("listen");
  Gathering gathering(join);
  while (!gathering.is_complete()) {
    if (!wait_readable(listener, deadline, join.check))
      gathering.fail(Errc::timeout,
                     fmt::format("rank(s) {} of {} did not join in time; were they started?",
                                 fmt::join(gathering.missing(), ", "), join.size));
    gathering.admit(Socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)), deadline);
  }
  return gathering.welcome();
}

Gathered meet_rank_0(const ShmJoin& join, Deadline deadline) {
  const auto [address, bytes] = address_of(join.rendezvous);
  Socket socket = make_socket();
  // Rank 0 may be later than we are.
  while (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    if (errno != ECONNREFUSED && errno != ENOENT && errno != EAGAIN && errno != EINTR)
      system_error("rendezvous: connect");
    if (Clock::now() > deadline)
      throw Error(
          Errc::timeout,
          fmt::format("rendezvous: rank 0 did not open '{}' in time: it has not started, or "
                      "all its ranks are there already",
                      join.rendezvous),
          {.rank = join.rank, .peer = 0});
    if (join.check) join.check();
    std::this_thread::sleep_for(1ms);
  }
  if (trusted_pid(socket) < 0)
    throw Error(Errc::system, fmt::format("rendezvous: '{}' belongs to another user; choose "
                                          "another name",
                                          join.rendezvous));
  Introduction hello;
  std::memcpy(hello.magic, kMagic.data(), kMagic.size());
  hello.rank = join.rank;
  hello.size = join.size;
  if (send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
    system_error("rendezvous: send");
  // Rank 0's own deadline names who is missing; ours is only for rank 0 itself.
  if (!wait_readable(socket, deadline + 1s, join.check))
    throw Error(Errc::timeout, "rendezvous: not all ranks joined in time", {.rank = join.rank});
  Welcome welcome;
  auto segment = std::make_shared<Segment>(receive_welcome(socket, welcome, join.rank));
  return {std::move(segment), welcome.cores};
}

}  // namespace sinew
