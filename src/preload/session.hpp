// The profiler's state of this process: its trace, the communicators it has seen, who it is.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "preload/abi.hpp"
#include "preload/mpitrace_files.hpp"
#include "trace/thread_log.hpp"

namespace sinew::preload {

using trace::Key;
using trace::Slot;
using trace::ThreadLog;

/// A communicator or the group of a window. Never freed: threads may still look at it.
struct Place {
  std::uint32_t id = 0;  // equal on all its ranks; 0: nowhere
  int rank = -1;
  int size = 0;
  int others = 0;  // ranks that a collective exchanges with: of the remote group, if there is one
  bool is_inter = false;
  int in_degree = 0, out_degree = 0;  // of a topology
  std::vector<int> world_rank;        // of the ranks that peers are numbered in
  std::uint32_t sequence = 0;         // collectives so far

  [[nodiscard]] int peer(int rank_here) const noexcept {
    return rank_here >= 0 && static_cast<std::size_t>(rank_here) < world_rank.size()
               ? world_rank[static_cast<std::size_t>(rank_here)]
               : rank_here;
  }
};

struct Settings {
  std::string folder;
  std::uint64_t budget_bytes = 64U << 20U;
  std::vector<std::pair<int, std::string>> labels;  // by tag
  MpitraceSettings mpitrace;
  std::vector<std::pair<int, int>> ranks;  // from, to; empty: all
};

/// One thread's part: a memo of the last call of each routine, so that equal calls cost little.
struct Memo {
  std::uint64_t words[5];
  std::uint32_t* sequence;
  Slot* slot;
  std::uint64_t epoch;
};
static_assert(sizeof(Memo) == 64);

inline constexpr std::size_t kMostRoutines = 1024;
struct Entry;

struct Thread {
  explicit Thread(trace::Writer& writer) : log(writer) {}
  ThreadLog log;
  Thread** active = nullptr;  // the variable that says that it is not inside a call
  std::uint32_t calls = 0;
  Memo memos[kMostRoutines] = {};
  std::vector<Entry*> entries;       // of a completion call
  std::vector<MPI_Status> statuses;  // for callers who want none
};

class Session {
 public:
  /// Throws Error when the trace cannot be made.
  Session(Settings settings, Questions questions, Handles handles);

  /// State for a new thread: that of one that has ended, where there is one.
  Thread* take_thread() noexcept;
  void give_thread(Thread* thread) noexcept;
  /// The place of a handle; the one of nowhere while MPI cannot be asked.
  Place& place(MPI_Comm comm) noexcept;
  Place& place_of_window(MPI_Win window) noexcept;
  void forget(std::uint64_t handle) noexcept;
  [[nodiscard]] std::uint64_t type_bytes(MPI_Datatype type) const noexcept;
  [[nodiscard]] std::uint64_t status_bytes(const MPI_Status& status) const noexcept;
  [[nodiscard]] std::uint8_t label_of(int tag) const noexcept;
  [[nodiscard]] bool is_active() const noexcept;
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

  /// Tells the trace who this is, once MPI knows it.
  void identify() noexcept;
  /// What the process has used so far.
  void note_usage() noexcept;
  /// Whether this rank was asked for; true before MPI knows it.
  [[nodiscard]] bool is_wanted() const noexcept;
  void note_routine(std::uint16_t routine, const char* name) noexcept;
  std::uint16_t region_of(const std::string& name) noexcept;

  const Questions ask;
  const Handles handles;
  trace::Writer writer;
  Place nowhere;
  std::atomic<std::uint16_t> region{0};

 private:
  Place& make_place(std::uint64_t handle, MPI_Group group, MPI_Group remote, const char* name,
                    std::uint32_t salt) noexcept;
  void find_degrees(MPI_Comm comm, Place& place) const noexcept;
  [[nodiscard]] std::vector<int> world_ranks(MPI_Group group) const;

  Settings settings_;
  std::mutex mutex_;
  std::vector<Thread*> idle_threads_;
  std::unordered_map<std::uint64_t, Place*> by_handle_;
  std::vector<std::unique_ptr<Place>> places_;
  std::unordered_map<std::uint32_t, std::uint32_t> same_members_;  // places by hash of members
  std::unordered_map<std::string, std::uint16_t> regions_;
  std::vector<std::atomic<bool>> noted_;
  std::atomic<bool> identified_{false};
  MPI_Group world_group_{};
  int rank_ = -1;
};

}  // namespace sinew::preload
