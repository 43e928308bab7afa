// One wrapped call: what its wrapper does before and after. The path of a call that is like the
// last one of its routine is inlined; all else is not.
#pragma once

#include <type_traits>

#include <preload/wrappers.hpp>  // generated
#include "preload/requests.hpp"
#include "preload/session.hpp"
#include "preload/volume.hpp"

namespace sinew::preload {

// Process and thread state. A preloaded library has nobody to hand them in; they are all here.
extern thread_local constinit Thread* t_active;  // null: inside a call, or none was made yet
extern std::atomic<std::uint64_t> g_epoch;       // memos of earlier ones are void
extern Next next;                                // what the program would have called
Requests& requests() noexcept;

struct InComm {
  MPI_Comm handle;
};
struct InWindow {
  MPI_Win handle;
};
struct Nowhere {};

inline Place& place_of(InComm where) noexcept { return session().place(where.handle); }
inline Place& place_of(InWindow where) noexcept { return session().place_of_window(where.handle); }
inline Place& place_of(Nowhere) noexcept { return session().nowhere; }

inline constexpr auto kNoVolume = [](const Place&) noexcept { return Volume{}; };

/// A status of our own where the caller wants none: it tells how much came.
class SeenStatus {
 public:
  explicit SeenStatus(MPI_Status* wanted) noexcept
      : seen_(wanted == MPI_STATUS_IGNORE ? &own_ : wanted) {}
  MPI_Status* get() noexcept { return seen_; }

 private:
  MPI_Status own_{};
  MPI_Status* seen_;
};

class Call {
 public:
  [[gnu::always_inline]] explicit Call(Thread*& active) noexcept : thread_(active) {
    if (thread_ == nullptr) [[unlikely]] {
      thread_ = enter();
      if (thread_ == nullptr) return;
    }
    active = nullptr;
    begin_ = trace::cycle_count();
  }
  [[gnu::always_inline]] ~Call() {
    if (thread_ != nullptr) t_active = thread_;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// False: the library calls itself, or nothing is recorded. Then just pass on.
  explicit operator bool() const noexcept { return thread_ != nullptr; }
  [[gnu::always_inline]] void stop() noexcept { took_ = trace::cycle_count() - begin_; }
  [[nodiscard]] Thread& thread() const noexcept { return *thread_; }
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return begin_ + took_; }

  /// Counts and records a call that `words` and its communicator determine.
  template <class Where, class Rule, class... Words>
  [[gnu::always_inline]] Slot* finish_memo(Routine routine, int result, Where where,
                                           const Rule& rule, bool numbered,
                                           Words... words) noexcept {
    Memo& memo = thread_->memos[routine];
    const std::uint64_t* word = memo.words;
    const bool same = result == MPI_SUCCESS && ((*word++ == number_of(words)) && ...) &&
                      memo.epoch == g_epoch.load(std::memory_order_relaxed);
    if (!same) [[unlikely]]
      return miss(routine, result, where, rule, numbered, words...);
    thread_->log.add(*memo.slot, begin_, took_, 0, ++*memo.sequence);
    return memo.slot;
  }

  template <class Where, class Rule>
  [[gnu::noinline]] Slot* finish(Routine routine, int result, Where where, const Rule& rule,
                                 bool numbered) noexcept {
    bool exact = false;
    std::uint32_t* sequence = nullptr;
    return record(routine, result, where, rule, numbered, exact, sequence);
  }

  template <class Where, class Rule>
  [[gnu::noinline]] void finish_recv(Routine routine, int result, Where where, const Rule& rule,
                                     MPI_Status* status) noexcept {
    auto& place = place_of(where);
    Volume volume;
    if (result == MPI_SUCCESS) {
      volume = rule(place);
      volume.received = session().status_bytes(*status);
      if (!volume.has_tag) {  // what was sent names itself; what came is named by the status
        volume.bytes = volume.received;
        volume.peer = place.peer(status->MPI_SOURCE);
        volume.tag = status->MPI_TAG;
        volume.has_tag = true;
      }
    }
    count(key_of(routine, place, volume));
  }

  void posted(int result, MPI_Request* request, Slot* slot, bool receives) noexcept;
  template <class Where, class Rule>
  [[gnu::noinline]] void persist(Routine routine, int result, Where where, const Rule& rule,
                                 bool receives, MPI_Request* request) noexcept {
    auto& place = place_of(where);
    count(key_of(routine, place, Volume{}));
    if (result == MPI_SUCCESS) keep(key_of(kRoutine_Start, place, rule(place)), receives, request);
  }
  /// Gives a new communicator its number at once, while all its ranks are at the same call.
  void created(int result, MPI_Comm* made) noexcept;
  /// For a communicator whose handle is gone.
  void finish_at(Routine routine, const Place& place) noexcept {
    count(key_of(routine, place, Volume{}));
  }
  /// Counts and records a call of this key.
  Slot* count(const Key& key) noexcept;

 private:
  /// Makes the thread's state at its first call. Null inside another call, or when all is off.
  static Thread* enter() noexcept;
  static Key key_of(Routine routine, const Place& place, const Volume& volume) noexcept;
  void keep(const Key& key, bool receives, MPI_Request* request) noexcept;

  template <class Where, class Rule>
  Slot* record(Routine routine, int result, Where where, const Rule& rule, bool numbered,
               bool& exact, std::uint32_t*& sequence) noexcept {
    auto& place = place_of(where);
    const auto key = key_of(routine, place, result == MPI_SUCCESS ? rule(place) : Volume{});
    const auto found = thread_->log.find(key);
    exact = found.exact;
    if (!exact) {
      found.slot->more_sent += key.sent;
      found.slot->more_received += key.received;
    }
    sequence = numbered && place.id != 0 ? &place.sequence : &thread_->calls;
    thread_->log.add(*found.slot, begin_, took_, 0, ++*sequence);
    return found.slot;
  }

  template <class Where, class Rule, class... Words>
  [[gnu::noinline]] Slot* miss(Routine routine, int result, Where where, const Rule& rule,
                               bool numbered, Words... words) noexcept {
    bool exact = false;
    std::uint32_t* sequence = nullptr;
    const auto epoch = g_epoch.load(std::memory_order_relaxed);
    Slot* const slot = record(routine, result, where, rule, numbered, exact, sequence);
    Memo& memo = thread_->memos[routine];
    memo.epoch = 0;
    if (!exact || result != MPI_SUCCESS) return slot;
    std::uint64_t* word = memo.words;
    ((*word++ = number_of(words)), ...);
    memo.sequence = sequence;
    memo.slot = slot;
    memo.epoch = epoch;
    return slot;
  }

  Thread* thread_;
  std::uint64_t begin_ = 0, took_ = 0;
};

}  // namespace sinew::preload
