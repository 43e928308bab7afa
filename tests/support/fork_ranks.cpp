#include "support/fork_ranks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>

#include "support/shared_store.hpp"
#include "transport/routed/routed.hpp"
#include "transport/shm/shm.hpp"

namespace sinew::test {
namespace {

using namespace std::chrono_literals;

std::string fresh_rendezvous() {
  static std::atomic<int> groups{0};
  return fmt::format("sinew-test-{}-{}", getpid(), ++groups);
}

[[noreturn]] void live(const Seat& seat, pid_t parent,
                       const std::function<void(const Seat&)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before we asked
  int status = 0;
  try {
    body(seat);
  } catch (const std::exception& error) {
    seat.tell(fmt::format("threw: {}", error.what()));
    status = 1;
  }
  // What a rank expects counts, too: the parent sees nothing of a child's assertions.
  if (testing::Test::HasFailure()) status = 1;
  _exit(status);  // the parent's atexit and test machinery are not ours to run
}

}  // namespace

std::string_view name(Medium medium) {
  constexpr std::string_view kNames[] = {"shm", "tcp", "routed"};
  return kNames[static_cast<std::size_t>(medium)];
}

// Hosts of neighbours and hosts of every other rank, so that no rank's number among its neighbours
// can pass for its number among all.
int Seat::node_of(int rank, int size) { return size % 2 == 0 ? rank * 2 / size : rank % 2; }

std::unique_ptr<Transport> Seat::join_sockets(std::string_view trial) const {
  TcpJoin join;
  join.store = store;
  join.rank = rank;
  join.size = size;
  join.group = trial;
  join.options = tcp;
  return join_tcp(join, Clock::now() + 20s);
}

std::unique_ptr<Transport> Seat::join_routed(std::string_view trial) const {
  Routes routes;
  for (int other = 0; other < size; ++other) routes.node_of.push_back(node_of(other, size));
  const int node = node_of(rank, size);
  const auto& nodes = routes.node_of;
  ShmJoin join;
  join.rendezvous = fmt::format("{}-{}-{}", rendezvous, trial, node);
  join.rank = static_cast<int>(std::count(nodes.begin(), nodes.begin() + rank, node));
  join.size = static_cast<int>(std::count(nodes.begin(), nodes.end(), node));
  routes.near = join_shm(join, Clock::now() + 20s);
  routes.far = join_sockets(trial);
  return route(std::move(routes));
}

Communicator Seat::join(std::string_view trial, const Options& options,
                        const SegmentOptions& segment, int domain) const {
  if (medium == Medium::tcp) return Communicator(join_sockets(trial), options);
  if (medium == Medium::routed) return Communicator(join_routed(trial), options);
  ShmJoin join;
  join.rendezvous = fmt::format("{}-{}", rendezvous, trial);
  join.rank = rank;
  join.size = size;
  join.options = segment;
  join.domain = domain;
  return Communicator(join_shm(join, Clock::now() + 20s), options);
}

void Seat::tell(std::string_view line) const {
  const auto text = fmt::format("{}\n", line);
  for (std::size_t done = 0; done < text.size();) {
    const auto wrote = ::write(report, text.data() + done, text.size() - done);
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
    if (wrote < 0 && errno != EINTR) return;
  }
}

ForkedRanks::ForkedRanks(int size, const std::function<void(const Seat&)>& body, Medium medium,
                         const TcpOptions& tcp) {
  const auto rendezvous = fresh_rendezvous();
  const auto store = std::make_shared<SharedStore>();
  const pid_t parent = getpid();
  for (int rank = 0; rank < size; ++rank) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    const pid_t pid = ::fork();
    if (pid < 0) throw std::runtime_error("fork");
    if (pid == 0) {
      // The other children's pipes are not ours: they must end when their writers do.
      for (const auto& sibling : children_) ::close(sibling.report);
      ::close(ends[0]);
      live({rank, size, rendezvous, ends[1], medium, store, tcp}, parent, body);
    }
    ::close(ends[1]);
    children_.push_back({pid, ends[0], {}, {}});
  }
}

ForkedRanks::~ForkedRanks() {
  for (auto& child : children_) {
    if (child.pid > 0) ::kill(child.pid, SIGKILL);
    reap(child);
    if (child.report >= 0) ::close(child.report);
  }
}

void ForkedRanks::reap(Child& child) {
  if (child.pid <= 0) return;
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  child.pid = -1;
  child.told.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void ForkedRanks::signal(int rank, int number) const {
  ::kill(children_[static_cast<std::size_t>(rank)].pid, number);
}

// False when nothing is left to read, or the time is over.
bool ForkedRanks::read_some(std::chrono::steady_clock::time_point until) {
  std::vector<pollfd> entries;
  for (const auto& child : children_) entries.push_back({child.report, POLLIN, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  if (std::all_of(entries.begin(), entries.end(), [](const pollfd& e) { return e.fd < 0; }) ||
      left <= 0)
    return false;
  ::poll(entries.data(), entries.size(), static_cast<int>(left));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto& child = children_[i];
    if (entries[i].revents == 0) continue;
    std::array<char, 65536> buffer{};
    const auto got = ::read(child.report, buffer.data(), buffer.size());
    if (got > 0) child.text.append(buffer.data(), static_cast<std::size_t>(got));
    for (auto end = child.text.find('\n'); end != std::string::npos; end = child.text.find('\n')) {
      child.told.lines.push_back(child.text.substr(0, end));
      child.text.erase(0, end + 1);
    }
    if (got == 0 || (got < 0 && errno != EINTR)) {
      ::close(child.report);
      child.report = -1;
    }
  }
  return true;
}

bool ForkedRanks::wait_for_lines(std::size_t lines, std::chrono::milliseconds limit) {
  std::vector<int> all(children_.size());
  std::iota(all.begin(), all.end(), 0);
  return wait_for_lines_of(all, lines, limit);
}

bool ForkedRanks::wait_for_lines_of(const std::vector<int>& ranks, std::size_t lines,
                                    std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  const auto told = [&](int rank) {
    return children_[static_cast<std::size_t>(rank)].told.lines.size() >= lines;
  };
  while (!std::all_of(ranks.begin(), ranks.end(), told))
    if (!read_some(until)) return false;
  return true;
}

std::vector<Told> ForkedRanks::finish(std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  while (read_some(until)) {
  }
  std::vector<Told> all;
  for (auto& child : children_) {
    // A closed pipe means it has ended or is about to; an open one that it is stuck.
    if (child.report >= 0 && child.pid > 0) ::kill(child.pid, SIGKILL);
    reap(child);
    all.push_back(child.told);
  }
  return all;
}

std::vector<std::string> fork_ranks(int size, const std::function<void(const Seat&)>& body,
                                    Medium medium, const TcpOptions& tcp,
                                    std::chrono::milliseconds limit) {
  ForkedRanks ranks(size, body, medium, tcp);
  std::vector<std::string> stories;
  const auto all = ranks.finish(limit);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    stories.insert(stories.end(), all[rank].lines.begin(), all[rank].lines.end());
    if (all[rank].status != 0 && all[rank].lines.empty())
      stories.push_back(fmt::format("rank {} ended with status {}", rank, all[rank].status));
  }
  return stories;
}

int open_descriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return static_cast<int>(std::distance(begin(folder), end(folder)));
}

bool maps_a_segment() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("memfd:sinew") != std::string::npos) return true;
  return false;
}

}  // namespace sinew::test
