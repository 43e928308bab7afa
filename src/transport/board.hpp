// Shared memory as an executor sees it: each rank has two slots that all can read, and a position
// in the common sequence of rounds that all can watch.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/relax.hpp"
#include "transport/doorbell.hpp"
#include "transport/segment.hpp"

namespace sinew {

/// The slot of each rank that a pass uses.
struct Slots {
  std::byte* first = nullptr;
  std::size_t stride = 0;
  [[nodiscard]] std::byte* of(int member) const noexcept {
    return first + static_cast<std::size_t>(member) * stride;
  }
};

/// Positions count rounds over the whole life of a communicator. Every operation takes the same
/// number of them on every rank, so "rank 3 is past position n" needs no further explanation.
class Board {
 public:
  Board(Segment& segment, Doorbell& doorbell, int rank)
      : segment_(segment),
        doorbell_(doorbell),
        rank_(rank),
        flag_(segment.flag(rank)),
        status_(segment.status(rank)),
        slot_bytes_(segment.options().slot_bytes),
        slots_each_(segment.options().slots),
        seen_(static_cast<std::size_t>(segment.ranks()), 0) {}

  /// Begins an operation that takes `positions` rounds over all its passes.
  void begin(OpTag tag, std::uint32_t positions) noexcept {
    take_positions(tag, positions);
    if (first_ - posted_ > kStale) [[unlikely]]
      refresh();
  }
  /// The same after post_ahead() of its first round.
  void begin_posted(OpTag tag, std::uint32_t positions) noexcept {
    take_positions(tag, positions);
    posted_ = first_ + 1;
  }
  [[nodiscard]] std::uint32_t first() const noexcept { return first_; }

  /// Where the next operation will begin.
  [[nodiscard]] std::uint32_t next() const noexcept { return next_; }

  /// post() for the operation that comes next.
  void post_ahead(std::uint32_t position, std::uint32_t fingerprint) noexcept {
    flag_.word.store(std::uint64_t{position} << 32 | fingerprint, std::memory_order_release);
    doorbell_.ring_posted();
  }
  /// Others may see everything written so far, and that this rank has come to `position`.
  void post(std::uint32_t position) noexcept {
    // release pairs with the acquire in reached(): payload before position
    flag_.word.store(std::uint64_t{position} << 32 | tag_.fingerprint, std::memory_order_release);
    posted_ = position;
    doorbell_.ring_posted();
  }
  /// Says that this rank has entered the operation, if nothing said so yet.
  void announce() noexcept {
    if (before(posted_, first_)) post(first_);
  }

  /// Whether `member` has come to `position`. A member that is there in another operation than
  /// ours makes mismatch() name it.
  bool reached(int member, std::uint32_t position) noexcept {
    auto& seen = seen_[static_cast<std::size_t>(member)];
    if (!before(seen, position)) return true;
    // acquire pairs with the release in post()
    const auto word = segment_.flag(member).word.load(std::memory_order_acquire);
    seen = static_cast<std::uint32_t>(word >> 32);
    // In this operation the word says which it is. A member past it may have got there by another
    // operation with more rounds: its history tells.
    const bool differs =
        before(seen, next_)
            ? !before(seen, first_) && static_cast<std::uint32_t>(word) != tag_.fingerprint
            : segment_.status(member).disagrees(tag_);
    if (differs) [[unlikely]] {
      mismatch_ = member;
      return false;
    }
    // What it does beyond our operation is looked at again in the next, together with which one it
    // takes that to be.
    if (!before(seen, next_)) [[unlikely]]
      seen = next_ - 1;
    return !before(seen, position);
  }
  /// Whether all of them have. Looks a few times more where ranks have a core each: what is missing
  /// is then on its way, and going back to the caller takes longer than it does.
  bool all_reached(std::span<const int> members, std::uint32_t position) noexcept {
    for (const int member : members)
      for (int looks = patience_; !reached(member, position); --looks)
        if (looks > 0 && mismatch_ < 0)
          relax();
        else
          return miss(members, position);
    return true;
  }
  /// Adds to what this rank waits for, as far as it may sleep.
  void want(const Want& more) noexcept {
    want_ = want_.of == Want::Of::nobody || want_ == more ? more : Want::anything();
  }
  /// What was wanted since the last call.
  Want take_want() noexcept {
    const auto wanted = std::exchange(want_, {});
    return wanted.of == Want::Of::nobody ? Want::anything() : wanted;
  }
  void set_patience(int looks) noexcept { patience_ = looks; }
  [[nodiscard]] int mismatch() const noexcept { return mismatch_; }
  /// Looks at everyone, for ranks that wait for each other on different paths.
  bool find_mismatch() noexcept {
    for (int member = 0; member < segment_.ranks(); ++member)
      if (member != rank_) reached(member, next_);
    return mismatch_ >= 0;
  }
  /// Counts what keeps this rank busy, so that others can tell it from somebody else on their core.
  void count_work(std::uint64_t bytes) noexcept {
    if (bytes >= kShort) status_.worked.store(worked_ += bytes, std::memory_order_relaxed);
  }
  /// How much all others have done since the last call.
  std::uint64_t work_of_others() noexcept {
    std::uint64_t sum = 0;
    for (int member = 0; member < segment_.ranks(); ++member)
      if (member != rank_) sum += segment_.status(member).worked.load(std::memory_order_relaxed);
    return sum - std::exchange(seen_work_, sum);
  }

  /// A pass uses one of the two slots; it may write once all are done with the pass before last.
  void begin_pass() noexcept { ++pass_; }
  void end_pass(std::uint32_t position) noexcept { pass_end_[pass_ & 1] = position; }
  [[nodiscard]] unsigned parity() const noexcept { return pass_ & 1; }
  [[nodiscard]] std::uint32_t writable_after() const noexcept { return pass_end_[pass_ & 1]; }

  /// A window of `bytes` (at most slot_bytes()) in everybody's slots, for this pass; all ranks ask
  /// for as many. It does not touch the window of the pass before, so that the rule for the pass
  /// before last holds: windows follow each other in one half, and then go on in the other.
  /// Thus long goes by until a line is written again, and by then readers' caches have let it go:
  /// to take it from them is what makes writing slow. Short ones use the same few lines again and
  /// again, which then stay in the nearest cache.
  Slots slots(std::size_t bytes) noexcept {
    if (window_end_ + bytes > slot_bytes_ || bytes < kShort) {
      slot_ = slot_ + 1 < slots_each_ && bytes >= kShort ? slot_ + 1 : short_slot_after(slot_);
      window_end_ = 0;
    }
    const auto begin = window_end_;
    window_end_ += bytes;
    return {segment_.slot(0, slot_) + begin, slots_each_ * slot_bytes_};
  }
  /// Slots of FlagLine::kTiny bytes, which arrive together with the position.
  [[nodiscard]] Slots tiny_slots() const noexcept {
    return {segment_.flag(0).tiny[parity()], sizeof(FlagLine)};
  }
  /// This rank's, of the next pass.
  [[nodiscard]] std::byte* next_tiny_slot() const noexcept { return flag_.tiny[(pass_ + 1) & 1]; }
  [[nodiscard]] std::byte* next_short_slot() const noexcept {
    return segment_.slot(rank_, short_slot_after(slot_));
  }
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return slot_bytes_; }

  /// Where this rank's buffers lie, for others to read there (or, in an arena, to write).
  void expose(const void* input, const void* output) noexcept {
    auto& address = status_.address[parity()];
    address[0].store(reinterpret_cast<std::uintptr_t>(input), std::memory_order_relaxed);
    address[1].store(reinterpret_cast<std::uintptr_t>(output), std::memory_order_relaxed);
  }
  /// An exposed buffer of a member that all can address: in its arena, or in our own process.
  [[nodiscard]] std::byte* exposed(int member, bool output) const noexcept {
    const auto& status = segment_.status(member);
    const auto address = status.address[parity()][output ? 1 : 0].load(std::memory_order_relaxed);
    const auto offset = address - status.base.load(std::memory_order_relaxed);
    return offset < segment_.bytes() ? segment_.base() + offset
                                     : reinterpret_cast<std::byte*>(address);
  }
  /// Copies out of a member's exposed buffer, wherever it lies. False: the member's memory cannot
  /// be read (it is gone).
  bool pull(int member, bool output, std::uint64_t offset, std::byte* dst, std::uint64_t bytes,
            bool streaming) noexcept;
  /// What `member` exposed, where this process can address it; null: it must be pulled.
  [[nodiscard]] const std::byte* in_sight(int member, bool output) const noexcept;
  /// Whether some rank has given up. What was read of a member's memory before that is what the
  /// member published: nobody who gives up returns to its caller earlier.
  [[nodiscard]] bool is_poisoned() const noexcept;
  /// Why the last pull() failed: an errno.
  [[nodiscard]] int pull_error() const noexcept { return pull_error_; }
  /// Whether others of the group are threads of this process, and do not merely stand for processes
  /// in a question.
  [[nodiscard]] bool is_one_process() const noexcept;
  void stand_for_processes() noexcept { stands_for_processes_ = true; }
  /// Whether every rank can read every other's private memory.
  [[nodiscard]] bool can_pull() const noexcept { return can_pull_; }
  void set_can_pull(bool can) noexcept { can_pull_ = can; }

  [[nodiscard]] bool in_arena(const void* pointer, std::size_t bytes) const noexcept {
    const auto offset = offset_in_arena(pointer);
    return offset < segment_.options().arena_bytes &&
           bytes <= segment_.options().arena_bytes - offset;
  }

  /// Windows of fewer bytes are short.
  static constexpr std::size_t kShort = 8 << 10;

 private:
  static std::uint32_t short_slot_after(std::uint32_t slot) noexcept { return slot == 0 ? 1 : 0; }
  // Positions wrap, so nobody's may get so old that it looks new: after long without board steps
  // say where we are, and look where the others are.
  static constexpr std::uint32_t kStale = std::uint32_t{1} << 29;
  void take_positions(OpTag tag, std::uint32_t positions) noexcept {
    tag_ = tag;
    first_ = next_;
    next_ = first_ + 1 + positions + 1;  // one for having entered, one for having left
  }
  void refresh() noexcept {
    post(first_);
    for (int member = 0; member < segment_.ranks(); ++member)
      seen_[static_cast<std::size_t>(member)] = static_cast<std::uint32_t>(
          segment_.flag(member).word.load(std::memory_order_acquire) >> 32);
    pass_end_[0] = pass_end_[1] = first_ - kStale;
  }

  bool miss(std::span<const int> members, std::uint32_t position) noexcept {
    if (members.size() == 1)
      want({Want::Of::one, members.front(), position});
    else if (members.size() + 1 == seen_.size())
      want({Want::Of::everyone, -1, position});
    else
      want(Want::anything());
    return false;
  }
  static bool before(std::uint32_t a, std::uint32_t b) noexcept {
    return static_cast<std::int32_t>(a - b) < 0;
  }
  [[nodiscard]] std::uint64_t offset_in_arena(const void* pointer) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(pointer) -
                                      segment_.arena(rank_));
  }

  Segment& segment_;
  Doorbell& doorbell_;
  int rank_;
  FlagLine& flag_;  // this rank's
  StatusLine& status_;
  OpTag tag_;
  std::uint32_t first_ = 0, next_ = 1;  // positions of the current operation, half open
  std::uint32_t posted_ = 0;
  std::uint32_t pass_ = 1;
  std::uint32_t pass_end_[2] = {0, 0};
  int mismatch_ = -1;
  int patience_ = 0;
  std::uint64_t worked_ = 0, seen_work_ = 0;
  std::size_t slot_bytes_;
  std::uint32_t slots_each_;
  std::uint32_t slot_ = 0;      // that windows are taken from,
  std::size_t window_end_ = 0;  // and where the last one in it ended
  Want want_;
  bool can_pull_ = false;
  bool stands_for_processes_ = false;
  int pull_error_ = 0;
  std::vector<std::uint32_t> seen_;  // position each member was last seen at
};

}  // namespace sinew
