// The executor: one resumable state machine for blocking, non-blocking and overlapped use.
#pragma once

#include <sinew/trace.hpp>
#include "runtime/plan.hpp"
#include "transport/board.hpp"

namespace sinew {

/// One execution of a plan. Polled until finished; nothing is allocated, locked or logged.
class Run {
 public:
  explicit Run(Transport& transport) noexcept
      : transport_(&transport), board_(transport.board()), rank_(transport.rank()) {}
  /// What to run on; takes effect with begin().
  void set(Plan& plan, const std::byte* input, std::byte* output) noexcept {
    plan_ = &plan;
    input_ = input;
    output_ = output;
  }
  /// `descriptor` must stay as it is while anything of this run or its repetitions goes on.
  void begin(OpTag tag, const OpDescriptor& descriptor, std::uint64_t hash) noexcept;

  /// Whether repeat() may do what the last run did once more, with the same `tag`: nothing else has
  /// used the board since that was done. That plan and buffers are still there is for the caller to
  /// know.
  [[nodiscard]] bool can_repeat(std::uint64_t tag) const noexcept {
    return ahead_.ready && settled_ && ahead_.tag == tag && ahead_.first == board_->next();
  }
  /// What the last begin() got, run again: begin() and the first poll() in one.
  Progress repeat(std::uint32_t sequence) noexcept;
  [[nodiscard]] OpTag tag() const noexcept { return tag_; }
  /// After begin(): reports every step and the end. Without, no clock is read.
  void observe(Observer& observer, const Event& event) noexcept;
  /// Moves whatever can move. Progress::failed: ask the transport why.
  Progress poll() noexcept;
  /// Whether the last poll moved anything.
  [[nodiscard]] bool moved() const noexcept { return moved_; }

  /// What the run is stuck on, for error texts.
  struct Position {
    std::string_view algorithm;
    std::uint32_t pass, passes, round, rounds;
    const BoundStep* step;                     // null: nothing left
    std::uint64_t bytes_done, bytes_expected;  // of its part in this pass
  };
  [[nodiscard]] Position position() const noexcept;

 private:
  Progress poll_stream(const BoundRound*& next, const BoundRound* end) noexcept;
  Progress poll_step(const BoundStep& step) noexcept;
  [[gnu::noinline]] Progress poll_wide(const BoundRound& round) noexcept;
  void begin_pass() noexcept;
  void begin_pass_on_board() noexcept;
  bool next_pass() noexcept;
  /// What of a step this pass does.
  struct Slice {
    std::uint64_t begin, bytes;
  };
  [[nodiscard]] Slice slice_of(const BoundStep& step) const noexcept;
  Progress attempt(const BoundStep& step) noexcept;
  void enter() noexcept;
  void get_ready() noexcept;
  void post_ahead() noexcept;
  bool arrived(const BoundStep& step, std::uint32_t position) noexcept;
  [[gnu::noinline]] Progress not_yet() noexcept;
  Progress publish(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes) noexcept;
  Progress gather(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes) noexcept;
  [[gnu::noinline]] Progress gather_by_reference(const BoundStep& step) noexcept;
  Progress read_where_told(const BoundStep& step) noexcept;
  Progress read_others(const BoundStep& step) noexcept;
  [[gnu::noinline]] Progress not_readable(int member) noexcept;
  using Inputs = std::span<const std::byte* const>;
  Inputs inputs_of(const BoundStep& step, std::uint64_t begin) noexcept;
  void fold(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes,
            Inputs inputs) noexcept;
  [[gnu::noinline]] void fold_everywhere(const BoundStep& step, std::uint64_t begin,
                                         std::uint64_t bytes) noexcept;
  [[gnu::noinline]] void observe_step(const BoundStep& step) noexcept;
  [[gnu::noinline]] void observe_end() noexcept;

  [[nodiscard]] std::span<const int> waits_of(const BoundStep& step) const noexcept {
    return {plan_->waits.data() + step.waits_begin, plan_->waits.data() + step.waits_end};
  }
  [[nodiscard]] const std::byte* source(const BoundStep& step) const noexcept {
    return base_[static_cast<std::size_t>(step.src_buf)] + step.src;
  }
  [[nodiscard]] std::byte* destination(const BoundStep& step) const noexcept {
    return base_[static_cast<std::size_t>(step.dst_buf)] + step.dst;
  }
  [[nodiscard]] std::byte* slot(int member) const noexcept { return slots_.of(member); }
  /// A round's position in this pass.
  [[nodiscard]] std::uint32_t at(std::uint32_t round) const noexcept {
    return first_position_ + round;
  }

  Transport* transport_;
  Board* board_;
  int rank_;
  Plan* plan_ = nullptr;
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  std::byte* base_[3] = {};  // by Buf: input, output, scratch
  Slots slots_;              // of this pass
  std::uint32_t first_position_ = 0;
  OpTag tag_;
  const OpDescriptor* descriptor_ = nullptr;
  bool entered_ = false;  // the transport knows which operation this is
  std::uint32_t pass_ = 0;
  std::uint32_t round_ = 0;  // of the first stream: number of the round being run
  bool moved_ = false;
  bool settled_ = false;                       // nothing is left to do
  PastCaches past_caches_ = PastCaches::none;  // how this run writes its slots
  std::uint64_t begun_ns_ = 0;                 // 0: this run is not measured
  /// The first round of the next run, made ready while this one waits.
  struct Ahead {
    bool ready = false;
    std::uint32_t first = 0;     // of its positions
    std::uint32_t position = 0;  // that it posts
    std::uint32_t fingerprint = 0;
    std::uint64_t tag = 0;
    std::byte* slot = nullptr;
    std::size_t source = 0, bytes = 0;
  };
  Ahead ahead_;
  std::uint64_t hash_ = 0;  // of the operation
  static constexpr std::size_t kStreams = kChannels;
  const BoundRound* next_[kStreams] = {};  // of each stream
  Observer* observer_ = nullptr;
  Event event_;
  std::uint64_t idle_since_ns_ = 0;
};

}  // namespace sinew
