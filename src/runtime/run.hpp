// The executor: one resumable state machine for blocking, non-blocking and overlapped use.
#pragma once

#include <sinew/trace.hpp>
#include "runtime/plan.hpp"
#include "transport/board.hpp"

namespace sinew {

/// One execution of a plan. Polled until finished; nothing is allocated, locked or logged.
class Run {
 public:
  /// What to run on; takes effect with begin().
  void set(Plan& plan, const std::byte* input, std::byte* output) noexcept {
    plan_ = &plan;
    input_ = input;
    output_ = output;
  }
  void begin(Transport& transport, OpTag tag) noexcept;
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
    const BoundStep* step;  // null: nothing left
    std::uint64_t bytes_done;
  };
  [[nodiscard]] Position position() const noexcept;

 private:
  Progress poll_stream(std::size_t stream) noexcept;
  bool next_pass() noexcept;
  bool next_part() noexcept;
  void rewind() noexcept;
  Progress attempt(std::uint32_t index) noexcept;
  Progress publish(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes) noexcept;
  Progress gather(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes) noexcept;
  void fold(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes) noexcept;
  void fold_everywhere(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes) noexcept;
  void observe_step(const BoundStep& step) noexcept;
  void observe_end() noexcept;

  [[nodiscard]] const std::byte* source(const BoundStep& step) const noexcept;
  [[nodiscard]] std::byte* destination(const BoundStep& step) const noexcept;
  [[nodiscard]] std::byte* slot(int member) const noexcept {
    return plan_->tiny ? board_->tiny_slot(member) : board_->slot(member);
  }
  [[nodiscard]] std::uint32_t at(std::uint32_t round) const noexcept {
    return board_->first() + 1 + pass_ * plan_->schedule().rounds + round;
  }

  Plan* plan_ = nullptr;
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  Transport* transport_ = nullptr;
  Board* board_ = nullptr;
  OpTag tag_;
  std::uint32_t pass_ = 0;
  std::uint32_t part_ = 0;   // of a vector that is run through in parts
  std::uint32_t round_ = 0;  // of the first stream: number of the round being run
  bool moved_ = false;
  bool settled_ = false;        // nothing is left to do
  bool streams_ = false;        // how this run writes its slots
  std::uint64_t begun_ns_ = 0;  // only where stores are measured
  static constexpr std::size_t kStreams = kChannels;
  std::uint32_t next_round_[kStreams] = {};
  Observer* observer_ = nullptr;
  Event event_;
  std::uint64_t idle_since_ns_ = 0;
};

}  // namespace sinew
