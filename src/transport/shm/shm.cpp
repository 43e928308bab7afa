#include "transport/shm/shm.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <xxhash.h>

#include <algorithm>
#include <thread>

#include <sinew/error.hpp>
#include "transport/domain.hpp"
#include "transport/shm/gather.hpp"
#include "transport/shm/pid_watch.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// A socket ends a moment before its process does.
constexpr auto kLastBreath = 500ms;

// Whether every rank can read its neighbour's memory, found by doing it: containers and security
// modules forbid it in many ways. All ranks get the same answer.
bool agree_on_pulling(Segment& segment, int rank, PidWatch& watch, Deadline deadline) {
  static const std::uint64_t word = 0x53494E4557505542;
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // where Yama asks; elsewhere without effect
  const int ranks = segment.ranks();
  const auto wait_for_all = [&](auto&& is_ready) {
    for (int peer = 0; peer < ranks; ++peer)
      while (!is_ready(segment.status(peer))) {
        // A rank that is done joining may be gone by the time we look; then all others are ready.
        if (watch.is_anyone_dead() && !is_ready(segment.status(peer))) {
          const int dead = watch.find_dead();
          throw Error(Errc::peer_lost, fmt::format("rendezvous: rank {} died while joining", dead),
                      {.rank = rank, .peer = dead});
        }
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
