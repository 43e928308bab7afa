#include "transport/shm/shm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <sinew/error.hpp>
#include "transport/cores.hpp"
#include "transport/domain.hpp"
#include "transport/shm/pid_watch.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 50ms;  // how often a rank that joins looks whether the others are alive
// A socket ends a moment before its process does.
constexpr auto kLastBreath = 500ms;

cpu_set_t own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  return set;
}

/// What a rank says when it joins. Fixed size; nothing is allocated from what it contains.
struct Hello {
  char magic[8] = {'s', 'i', 'n', 'e', 'w', '-', '1', 0};
  std::int32_t rank = -1;
  std::int32_t size = 0;
  cpu_set_t cpus = own_cpus();  // where it may run; all ranks' together are the cores of the group
};
/// What rank 0 answers, with the segment's descriptor, when everyone is there.
struct Welcome {
  std::int32_t cores = 1;
};

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

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

// Looks up now and then, whether waiting is still of use.
bool wait_readable(const Socket& socket, Deadline deadline, const Check& check) {
  while (true) {
    if (check) check();
    const auto until = check ? std::min(deadline, Clock::now() + kLook) : deadline;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd entry{socket.get(), POLLIN, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) system_error("poll");
  }
}

/// Whether the other end belongs to the same user; its process id if so.
int trusted_pid(const Socket& socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return -1;
  return peer.uid == geteuid() ? peer.pid : -1;
}

void send_welcome(const Socket& socket, const Welcome& welcome, int descriptor) {
  Welcome payload = welcome;
  iovec part{&payload, sizeof payload};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  if (sendmsg(socket.get(), &message, MSG_NOSIGNAL) < 0) system_error("rendezvous: sendmsg");
}

int receive_welcome(const Socket& socket, Welcome& welcome) {
  iovec part{&welcome, sizeof welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto bytes = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (bytes != sizeof welcome || header == nullptr || header->cmsg_type != SCM_RIGHTS)
    throw Error(Errc::peer_lost, "rendezvous: rank 0 closed the connection before all had joined",
                {.peer = 0});
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
  return descriptor;
}

struct Joined {
  std::shared_ptr<Segment> segment;
  int cores;
};

// Rank 0: collect everybody, then hand out the segment, so that whoever gets it knows all are
// there.
Joined gather_ranks(const ShmJoin& join, Deadline deadline) {
  auto segment = std::make_shared<Segment>(join.size, join.options);
  segment->status(0).pid.store(getpid());
  const Socket listener = make_socket();
  const auto [address, bytes] = address_of(join.rendezvous);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
    throw Error(errno == EADDRINUSE ? Errc::invalid_argument : Errc::system,
                fmt::format("rendezvous '{}' is taken: is another job using it? ({})",
                            join.rendezvous, std::strerror(errno)));
  if (listen(listener.get(), join.size) != 0) system_error("listen");
  std::vector<Socket> members;
  std::vector<bool> here(static_cast<std::size_t>(join.size), false);
  here[0] = true;
  cpu_set_t cpus = own_cpus();
  while (static_cast<int>(members.size()) < join.size - 1) {
    if (!wait_readable(listener, deadline, join.check)) {
      std::vector<int> missing;
      for (int rank = 0; rank < join.size; ++rank)
        if (!here[static_cast<std::size_t>(rank)]) missing.push_back(rank);
      throw Error(Errc::timeout, fmt::format("rendezvous: rank(s) {} of {} did not join in time",
                                             fmt::join(missing, ", "), join.size));
    }
    Socket member(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const int pid = member.get() >= 0 ? trusted_pid(member) : -1;
    Hello hello;
    if (pid < 0 || !wait_readable(member, std::min(deadline, Clock::now() + 1s), join.check) ||
        recv(member.get(), &hello, sizeof hello, 0) != sizeof hello ||
        std::memcmp(hello.magic, Hello{}.magic, sizeof hello.magic) != 0)
      continue;  // a stranger
    if (hello.size != join.size || hello.rank < 1 || hello.rank >= join.size ||
        here[static_cast<std::size_t>(hello.rank)])
      throw Error(Errc::invalid_argument,
                  fmt::format("rendezvous: process {} says it is rank {} of {}, but this job has "
                              "{} ranks and each joins once",
                              pid, hello.rank, hello.size, join.size));
    here[static_cast<std::size_t>(hello.rank)] = true;
    segment->status(hello.rank).pid.store(pid);
    CPU_OR(&cpus, &cpus, &hello.cpus);
    members.push_back(std::move(member));
  }
  const int cores = join.cores > 0 ? join.cores : within_quota(CPU_COUNT(&cpus));
  for (const auto& member : members) send_welcome(member, {cores}, segment->descriptor());
  return {std::move(segment), cores};
}

Joined meet_rank_0(const ShmJoin& join, Deadline deadline) {
  const auto [address, bytes] = address_of(join.rendezvous);
  Socket socket = make_socket();
  // Rank 0 may be later than we are.
  while (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    if (errno != ECONNREFUSED && errno != ENOENT && errno != EAGAIN && errno != EINTR)
      system_error("rendezvous: connect");
    if (Clock::now() > deadline)
      throw Error(Errc::timeout,
                  fmt::format("rendezvous: rank 0 did not open '{}' in time", join.rendezvous),
                  {.rank = join.rank, .peer = 0});
    if (join.check) join.check();
    std::this_thread::sleep_for(1ms);
  }
  if (trusted_pid(socket) < 0)
    throw Error(Errc::system, "rendezvous: the listener belongs to another user");
  Hello hello;
  hello.rank = join.rank;
  hello.size = join.size;
  if (send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
    system_error("rendezvous: send");
  // Rank 0's own deadline names who is missing; ours is only for rank 0 itself.
  if (!wait_readable(socket, deadline + 1s, join.check))
    throw Error(Errc::timeout, "rendezvous: not all ranks joined in time", {.rank = join.rank});
  Welcome welcome;
  auto segment = std::make_shared<Segment>(receive_welcome(socket, welcome));
  return {std::move(segment), welcome.cores};
}

// Whether every rank can read its neighbour's memory, found by doing it: containers and security
// modules forbid it in many ways. All ranks get the same answer.
bool agree_on_pulling(Segment& segment, int rank, Watch& watch, Deadline deadline) {
  static const std::uint64_t word = 0x53494E4557505542;
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // where Yama asks; elsewhere without effect
  const int ranks = segment.ranks();
  const auto wait_for_all = [&](auto&& is_ready) {
    for (int peer = 0; peer < ranks; ++peer)
      while (!is_ready(segment.status(peer))) {
        if (const int dead = watch.find_dead(); dead >= 0)
          throw Error(Errc::peer_lost, fmt::format("rendezvous: rank {} died while joining", dead),
                      {.rank = rank, .peer = dead});
        if (Clock::now() > deadline)
          throw Error(Errc::timeout,
                      fmt::format("rendezvous: rank {} joined but fell silent", peer),
                      {.rank = rank, .peer = peer});
        std::this_thread::sleep_for(50us);
      }
  };
  segment.status(rank).address[0][0].store(reinterpret_cast<std::uintptr_t>(&word),
                                           std::memory_order_release);
  wait_for_all([](const StatusLine& status) {
    return status.address[0][0].load(std::memory_order_acquire) != 0;
  });
  const auto& next = segment.status((rank + 1) % ranks);
  std::uint64_t seen = 0;
  const iovec local{&seen, sizeof seen};
  const iovec remote{reinterpret_cast<void*>(next.address[0][0].load()), sizeof seen};
  const bool works =
      process_vm_readv(next.pid.load(), &local, 1, &remote, 1, 0) == sizeof seen && seen == word;
  segment.status(rank).pulls.store(works ? 1 : 2, std::memory_order_release);
  wait_for_all(
      [](const StatusLine& status) { return status.pulls.load(std::memory_order_acquire) != 0; });
  bool all = true;
  for (int peer = 0; peer < ranks; ++peer) all &= segment.status(peer).pulls.load() == 1;
  return all;
}

// Where some ranks of a group meet: a name of one length, however deep groups are nested.
std::string name_within(const std::string& rendezvous, std::string_view label) {
  const auto path = fmt::format("{}/{}", rendezvous, label);
  const auto hash = XXH3_128bits(path.data(), path.size());
  return fmt::format("sinew-part-{:016x}{:016x}", hash.high64, hash.low64);
}

std::unique_ptr<Transport> meet(const ShmJoin& join, Deadline deadline) {
  auto [segment, cores] =
      join.rank == 0 ? gather_ranks(join, deadline) : meet_rank_0(join, deadline);
  std::vector<int> pids;
  for (int rank = 0; rank < join.size; ++rank) pids.push_back(segment->status(rank).pid.load());
  auto whole = join;
  whole.check = nullptr;  // was for joining only
  auto subset = [whole](std::span<const int> members, std::string_view label, Deadline until,
                        const Check& check) {
    const auto at = std::find(members.begin(), members.end(), whole.rank);
    auto part = whole;
    part.check = check;
    part.rendezvous = name_within(whole.rendezvous, label);
    part.rank = static_cast<int>(at - members.begin());
    part.size = static_cast<int>(members.size());
    return join_shm(part, until);
  };
  segment->status(join.rank).domain.store(join.domain + 1, std::memory_order_release);
  // Nobody gets past agreeing before everybody watches everybody: a rank may be done, and gone, as
  // soon as it has joined.
  auto watch = std::make_unique<PidWatch>(pids, join.rank);
  const bool pulls = agree_on_pulling(*segment, join.rank, *watch, deadline + 1s) && join.pull;
  auto transport = std::make_unique<SharedTransport>("shm", std::move(segment), join.rank, cores,
                                                     std::move(watch), std::move(subset));
  transport->board()->set_can_pull(pulls);
  return transport;
}

}  // namespace

std::unique_ptr<Transport> join_shm(const ShmJoin& wanted, Deadline deadline) {
  auto join = wanted;
  if (join.size < 1 || join.rank < 0 || join.rank >= join.size)
    throw Error(Errc::invalid_argument,
                fmt::format("rank {} is not one of {}", join.rank, join.size));
  const auto cpus = own_cpus();
  if (join.domain < 0) join.domain = domains_of({&cpus, 1}).front();
  try {
    return meet(join, deadline);
  } catch (const Error& error) {
    // Whoever closed its socket on us may have died, or have met one who had: the group knows.
    for (const auto until = Clock::now() + kLastBreath;
         join.check && error.code() != Errc::timeout && Clock::now() < until;
         std::this_thread::sleep_for(1ms))
      join.check();
    throw;
  }
}

}  // namespace sinew
