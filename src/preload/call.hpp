// One wrapped call: what its wrapper does before and after.
#pragma once

#include <type_traits>

#include <preload/wrappers.hpp>  // generated
#include "preload/requests.hpp"
#include "preload/session.hpp"
#include "preload/volume.hpp"

namespace sinew::preload {

// Process and thread state. A preloaded library has nobody to hand them in; they are all here.
extern thread_local constinit Thread* t_active;  // null: inside a call, or none was made yet
extern std::atomic<bool> g_off;                  // nothing is recorded any more
extern std::atomic<std::uint64_t> g_epoch;       // memos of earlier ones are void
extern Next next;                                // what the program would have called
Requests& requests() noexcept;
/// Ends the profile of this process and removes its trace: nobody asked for this rank.
void leave_out() noexcept;

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

/// Whether the thread's last call of this routine was like this one, so that its slot is known.
template <class... Words>
[[gnu::always_inline]] inline bool is_same(const Memo& memo, Words... words) noexcept {
  const std::uint64_t* word = memo.words;
  return ((static_cast<decltype(number_of(words))>(*word++) == number_of(words)) && ...) &&
         memo.epoch == g_epoch.load(std::memory_order_relaxed);
}

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

/// From here on the request is known by its handle.
void follow(int result, MPI_Request* request, Slot* slot, bool receives, std::uint64_t begin,
            std::uint64_t took) noexcept;

/// A call of any kind.
class Call {
 public:
  explicit Call(Thread*& active) noexcept : thread_(active) {
    if (thread_ == nullptr) thread_ = enter();
    if (thread_ == nullptr) return;
    active = nullptr;
    begin_ = trace::cycle_count();
  }
  ~Call() {
    if (thread_ != nullptr && !g_off.load(std::memory_order_relaxed)) t_active = thread_;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// False: the library calls itself, or nothing is recorded. Then just pass on.
  explicit operator bool() const noexcept { return thread_ != nullptr; }
  void stop() noexcept { took_ = trace::cycle_count() - begin_; }
  [[nodiscard]] Thread& thread() const noexcept { return *thread_; }
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return begin_ + took_; }

  /// Counts and records.
  template <class Where, class Rule>
  Slot* finish(Routine routine, int result, Where where, const Rule& rule, bool numbered) noexcept {
    return record(routine, result, where, rule, numbered).slot;
  }
  /// The same, for a call that `words` determine, its communicator among them; remembers it.
  template <class Where, class Rule, class... Words>
  Slot* finish_memo(Routine routine, int result, Where where, const Rule& rule, bool numbered,
                    Words... words) noexcept {
    Memo& memo = thread_->memos[routine];
    if (result == MPI_SUCCESS && is_same(memo, words...)) {
      thread_->log.add(*memo.slot, begin_, took_, 0, ++*memo.sequence);
      return memo.slot;
    }
    const auto epoch = g_epoch.load(std::memory_order_relaxed);
    const auto done = record(routine, result, where, rule, numbered);
    memo.epoch = 0;
    if (!done.exact || result != MPI_SUCCESS) return done.slot;
    std::uint64_t* word = memo.words;
    ((*word++ = number_of(words)), ...);
    memo.sequence = done.sequence;
    memo.slot = done.slot;
    memo.epoch = epoch;
    return done.slot;
  }

  template <class Where, class Rule>
  void finish_recv(Routine routine, int result, Where where, const Rule& rule,
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

  void posted(int result, MPI_Request* request, Slot* slot, bool receives) const noexcept {
    follow(result, request, slot, receives, begin_, took_);
  }
  template <class Where, class Rule>
  void persist(Routine routine, int result, Where where, const Rule& rule, bool receives,
               MPI_Request* request) noexcept {
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

  struct Recorded {
    Slot* slot;
    std::uint32_t* sequence;  // what numbers such calls
    bool exact;               // the slot is of this key alone
  };
  template <class Where, class Rule>
  Recorded record(Routine routine, int result, Where where, const Rule& rule,
                  bool numbered) noexcept {
    auto& place = place_of(where);
    const auto key = key_of(routine, place, result == MPI_SUCCESS ? rule(place) : Volume{});
    const auto [slot, exact] = thread_->log.find(key);
    if (!exact) {
      slot->more_sent += key.sent;
      slot->more_received += key.received;
    }
    std::uint32_t* const sequence = numbered && place.id != 0 ? &place.sequence : &thread_->calls;
    thread_->log.add(*slot, begin_, took_, 0, ++*sequence);
    return {slot, sequence, exact};
  }

  Thread* thread_;
  std::uint64_t begin_ = 0, took_ = 0;
};

/// A call whose slot is known before it is made. This is the path that must cost little: nothing
/// of it but the slot, the thread and the time lives across the call.
class Repeat {
 public:
  [[gnu::always_inline]] Repeat(Thread* thread, const Memo& memo) noexcept
      : thread_(thread), memo_(memo) {
    t_active = nullptr;
    begin_ = trace::cycle_count();
  }
  Repeat(const Repeat&) = delete;
  Repeat& operator=(const Repeat&) = delete;

  [[gnu::always_inline]] void finish(Routine routine, int result) noexcept {
    took_ = trace::cycle_count() - begin_;
    if (result == MPI_SUCCESS) [[likely]]
      thread_->log.add(*memo_.slot, begin_, took_, 0, ++*memo_.sequence);
    else
      fail(*thread_, routine, memo_, begin_, took_);
    *thread_->active = thread_;  // its address need not be kept across the call
  }
  void posted(int result, MPI_Request* request, bool receives) const noexcept {
    follow(result, request, memo_.slot, receives, begin_, took_);
  }

 private:
  /// Counted, without bytes.
  static void fail(Thread& thread, Routine routine, const Memo& memo, std::uint64_t begin,
                   std::uint64_t took) noexcept;
  Thread* thread_;
  const Memo& memo_;
  std::uint64_t begin_, took_ = 0;
};

}  // namespace sinew::preload
