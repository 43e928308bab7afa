#include "cli/bench_hand.hpp"

#include <sched.h>

#include <cstring>
#include <memory>
#include <vector>

#include "cli/bench_contender.hpp"
#include "kernel/reduce.hpp"
#include "measure/measure.hpp"
#include "transport/cores.hpp"
#include "transport/segment.hpp"

namespace sinew {
namespace {

class HandContender final : public bench::Contender {
 public:
  HandContender(Segment& segment, bench::Seat seat, bool crowded)
      : segment_(segment),
        seat_(seat),
        crowded_(crowded),
        inputs_(static_cast<std::size_t>(seat.ranks)) {}

  bool supports(const bench::Case& what) override {
    return what.collective == bench::Collective::allreduce && what.in_place &&
           what.options.empty() && what.bytes <= segment_.options().slot_bytes;
  }
  void prepare(const bench::Case& what, const bench::Buffers& buffers) override {
    bytes_ = what.bytes;
    data_ = buffers.output.data();
  }

  // Publish mine, wait for everyone's, add them in rank order. Two slots by parity: whoever reaches
  // the next exchange has finished reading the one before.
  void run() override {
    const auto turn = ++turn_;
    const auto parity = static_cast<unsigned>(turn & 1);
    std::memcpy(slot(seat_.rank, parity), data_, bytes_);
    segment_.flag(seat_.rank).word.store(turn, std::memory_order_release);
    for (int rank = 0; rank < seat_.ranks; ++rank) {
      int spins = 0;
      while (segment_.flag(rank).word.load(std::memory_order_acquire) < turn)
        if (crowded_ && ++spins > 2)
          sched_yield();
        else
          __builtin_ia32_pause();
      inputs_[static_cast<std::size_t>(rank)] = rank == seat_.rank ? data_ : slot(rank, parity);
    }
    sum_.fold({&data_, 1}, inputs_, bytes_ / sizeof(float), 0);
  }

 private:
  std::byte* slot(int rank, unsigned parity) const {
    return bytes_ <= FlagLine::kTiny ? segment_.flag(rank).tiny[parity]
                                     : segment_.slot(rank, parity);
  }

  Segment& segment_;
  bench::Seat seat_;
  bool crowded_;
  Reducer sum_ = find_reducer(DType::f32, ReduceOp::sum);
  std::vector<const std::byte*> inputs_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t turn_ = 0;
};

}  // namespace

bench::Launcher hand_written_ranks(bool bind) {
  return [bind](const bench::Launch& launch, std::vector<pid_t>& children) {
    // Made before the fork, so that all ranks have it.
    const auto segment = std::make_shared<Segment>(launch.ranks, SegmentOptions{});
    bench::fork_ranks([=](bench::Control& control) {
      const bool crowded = control.seat().ranks > allowed_cores();  // before it is bound to one
      if (bind) bind_to_core(control.seat().rank);
      HandContender contender(*segment, control.seat(), crowded);
      bench::serve(control, contender);
    })(launch, children);
  };
}

}  // namespace sinew
