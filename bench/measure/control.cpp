// The control segment as a rank sees it, and the barrier that belongs to no library.
#include "measure/control.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "measure/segment.hpp"

namespace sinew::bench {
namespace {

constexpr std::uint64_t kSpinNs = 20'000;
constexpr int kYields = 16;
constexpr std::uint64_t kLongYieldNs = 50'000;  // a stranger had the core: yielding is no use
constexpr std::uint64_t kSleepNs = 100'000'000;

Fd open_segment(const std::string& path) {
  Fd file{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  if (!file.valid()) {
    throw std::runtime_error("control segment " + path + ": " + std::strerror(errno));
  }
  return file;
}

std::size_t checked_bytes(const Fd& file, const std::string& path) {
  struct stat status {};
  std::uint32_t magic = 0;
  if (::fstat(file.get(), &status) != 0 ||
      ::pread(file.get(), &magic, sizeof magic, 0) != sizeof magic || magic != detail::kMagic) {
    throw std::runtime_error(path + " is not a control segment of this version");
  }
  return static_cast<std::size_t>(status.st_size);
}

/// True when the word changed: by looking, then by yielding, without ever sleeping.
bool changed_soon(const std::atomic<std::uint32_t>& word, std::uint32_t old, bool crowded) {
  const auto changed = [&] { return word.load(std::memory_order_acquire) != old; };
  // With a core for each rank the others are surely running. Without, spinning would keep a core
  // from the very rank that is waited for, or from a library's own helper thread.
  for (const std::uint64_t end = crowded ? 0 : now_ns() + kSpinNs; now_ns() < end;) {
    for (int look = 0; look < 64; ++look) {
      if (changed()) return true;
      pause_briefly();
    }
  }
  for (int i = 0; i < kYields; ++i) {
    if (changed()) return true;
    const std::uint64_t before = now_ns();
    ::sched_yield();
    if (now_ns() - before > kLongYieldNs) break;
  }
  return changed();
}

}  // namespace

Control::Control(const std::string& path, int rank) : Control(path, rank, open_segment(path)) {}

Control::Control(const std::string& path, int rank, Fd file)
    : mapping_(file, checked_bytes(file, path)),
      seat_{.rank = rank, .ranks = mapping_.segment().ranks},
      parent_(open_pidfd(mapping_.segment().parent)) {
  if (rank < 0 || rank >= seat_.ranks) {
    throw std::runtime_error("rank " + std::to_string(rank) + " of a control segment for " +
                             std::to_string(seat_.ranks));
  }
}

int Control::ranks(const std::string& path) {
  const Fd file = open_segment(path);
  return detail::Mapping(file, checked_bytes(file, path)).segment().ranks;
}

bool Control::crowded() const noexcept { return seat_.ranks > mapping_.segment().cores; }

void Control::leave_if_abandoned() const {
  if (has_ended(parent_)) throw Abandoned{};
}

void Control::join() {
  auto& line = mapping_.line(seat_.rank);
  line.state.store(RankState::idle, std::memory_order_relaxed);
  line.pid.store(::getpid(), std::memory_order_release);
  // Pairs with the acquire in ControlOwner::wait_for_news().
  mapping_.segment().news.fetch_add(1, std::memory_order_release);
  futex_wake_all(mapping_.segment().news);
}

std::optional<Command> Control::next_command() {
  auto& segment = mapping_.segment();
  // Pairs with the release in ControlOwner::post().
  while (segment.command.load(std::memory_order_acquire) == command_seen_) {
    futex_wait(segment.command, command_seen_, kSleepNs);
    leave_if_abandoned();
  }
  ++command_seen_;
  if (segment.dismissed.load(std::memory_order_relaxed)) return std::nullopt;
  const auto& posted = segment.posted;
  Command command;
  command.what = {.collective = posted.collective,
                  .bytes = posted.bytes,
                  .element_bytes = posted.element_bytes,
                  .root = posted.root,
                  .in_place = posted.in_place,
                  .rewrite = posted.rewrite,
                  .counts = {},
                  .options = posted.options.data()};
  const auto counts = mapping_.counts().first(posted.counts);
  command.what.counts.assign(counts.begin(), counts.end());
  command.limits = posted.limits;
  command.round = posted.round;
  return command;
}

void Control::finish(RankState state, std::string_view message) {
  auto& line = mapping_.line(seat_.rank);
  detail::copy_text(line.message, message);
  line.state.store(state, std::memory_order_release);
  // Pairs with the acquire in ControlOwner::wait_for_news().
  mapping_.segment().news.fetch_add(1, std::memory_order_release);
  futex_wake_all(mapping_.segment().news);
}

void Control::barrier() {
  auto& segment = mapping_.segment();
  // Cannot move before this rank has arrived.
  const std::uint32_t old = segment.generation.load(std::memory_order_relaxed);
  // Acquire and release: whoever comes last has seen all that the others wrote before arriving.
  if (segment.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      static_cast<std::uint32_t>(seat_.ranks)) {
    segment.arrived.store(0, std::memory_order_relaxed);
    // Sequentially consistent with `sleepers`: either the sleeper sees the new generation before
    // it sleeps, or it is seen here and woken.
    segment.generation.store(old + 1, std::memory_order_seq_cst);
    if (segment.sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(segment.generation);
    return;
  }
  if (changed_soon(segment.generation, old, crowded())) return;
  segment.sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (segment.generation.load(std::memory_order_seq_cst) == old) {
    futex_wait(segment.generation, old, kSleepNs);
    leave_if_abandoned();
  }
  segment.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

std::uint32_t Control::agree(std::uint32_t value_of_rank_0) {
  // Two slots in turn: rank 0 may be at its next decision before a slow rank has read this one,
  // but not two ahead, for the barrier between needs the slow rank too.
  auto& slot = mapping_.segment().agreed[agreements_++ % 2];
  if (seat_.rank == 0) slot.store(value_of_rank_0, std::memory_order_relaxed);
  barrier();  // orders the store before the load
  return slot.load(std::memory_order_relaxed);
}

void Control::stamp(std::uint32_t sample, Stamp times) noexcept {
  mapping_.stamps(seat_.rank)[sample] = times;
}

Stamp Control::last_of_all(std::uint32_t sample) {
  Stamp last;
  for (int rank = 0; rank < seat_.ranks; ++rank) {
    const Stamp one = mapping_.stamps(rank)[sample];
    last.begin_ns = std::max(last.begin_ns, one.begin_ns);
    last.end_ns = std::max(last.end_ns, one.end_ns);
  }
  return last;
}

void Control::report(const Report& report) { mapping_.line(seat_.rank).report = report; }

void Control::publish(std::string_view key, std::string_view value) {
  auto& line = mapping_.line(seat_.rank);
  const detail::NoteHead head{.key_bytes = static_cast<std::uint32_t>(key.size()),
                              .value_bytes = static_cast<std::uint32_t>(value.size())};
  const std::size_t used = line.notes_bytes.load(std::memory_order_relaxed);
  const std::size_t needed = sizeof head + key.size() + value.size();
  if (needed > line.notes.size() - used) throw std::runtime_error("no room to publish more");
  char* at = line.notes.data() + used;
  std::memcpy(at, &head, sizeof head);
  at = std::ranges::copy(key, at + sizeof head).out;
  std::ranges::copy(value, at);
  line.notes_bytes.store(static_cast<std::uint32_t>(used + needed), std::memory_order_release);
}

std::optional<std::string> Control::published(std::string_view key) const {
  leave_if_abandoned();
  for (int rank = 0; rank < seat_.ranks; ++rank) {
    const auto& line = mapping_.line(rank);
    // Pairs with the release in publish().
    std::string_view notes(line.notes.data(), line.notes_bytes.load(std::memory_order_acquire));
    while (!notes.empty()) {
      detail::NoteHead head;
      std::memcpy(&head, notes.data(), sizeof head);
      notes.remove_prefix(sizeof head);
      if (notes.substr(0, head.key_bytes) == key) {
        return std::string(notes.substr(head.key_bytes, head.value_bytes));
      }
      notes.remove_prefix(head.key_bytes + head.value_bytes);
    }
  }
  return std::nullopt;
}

}  // namespace sinew::bench
