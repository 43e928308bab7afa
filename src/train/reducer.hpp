// The gradients of a model, and their sum over all ranks: bucket by bucket while the backward pass
// is still running, in an order that was agreed before the first step.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <sinew/compression.hpp>
#include "train/bucket_plan.hpp"
#include "train/compression_spec.hpp"
#include "train/optimizer.hpp"
#include "train/train_trace.hpp"

namespace sinew {

/// What communication cost one step.
struct ReduceReport {
  std::uint64_t busy_ns = 0;      // in collectives and compression, wherever they ran
  std::uint64_t hidden_ns = 0;    // of which while the backward pass was running
  std::uint64_t exposed_ns = 0;   // from the end of the backward pass to the end of the last bucket
  std::uint64_t waiting_ns = 0;   // in collectives, with nothing to do; when measured
  std::uint64_t compress_ns = 0;  // selecting, packing and adding up, beside the wire
  std::uint64_t bytes_sent = 0;
  std::uint64_t collectives = 0;  // when measured
  std::uint64_t items = 0;        // elements of the sum that are not known to be 0
  std::uint64_t elements = 0;
  bool compressed = false;  // a step of the compressed phase
};

/// Counts, and passes every event on.
class ReduceMeter final : public Observer {
 public:
  void on_event(const Event& event) noexcept override;
  std::uint64_t waiting_ns = 0;
  std::uint64_t collectives = 0;
  Observer* next = nullptr;
};

struct ReducerOptions {
  CompressionSpec compression{};
  bool overlap = true;  // false: everything after the backward pass
  /// Gradients are added to what is in their places, which is 0 before the first step: then a
  /// scheme that can (SchemeInfo::far) keeps there what it does not send.
  bool accumulates = false;
  bool measure = true;           // waiting and collectives; reads the clock in each step of each
  Observer* observer = nullptr;  // sees every event of every collective; must outlive the reducer
  TrainTrace* trace = nullptr;   // the same, and the buckets
};

/// Used by one thread; it has one of its own, which runs collectives while the backward pass
/// computes, sleeps otherwise, and never outlives a failure of the communicator. Ranks construct it
/// together, after agree_on(). The communicator is the reducer's from begin() to finish(), and must
/// outlive it.
class GradientReducer {
 public:
  GradientReducer(Communicator& communicator, const BucketPlan& plan, ReducerOptions options = {});
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;
  ~GradientReducer();

  /// The flat gradient: in memory shared by the ranks of a host where there is such, so that a
  /// dense sum copies nothing. Zero at first.
  [[nodiscard]] std::span<float> gradients() const noexcept { return flat_; }
  [[nodiscard]] std::span<float> gradient(std::size_t parameter) const noexcept;

  /// A step begins. `step` decides between warm-up and compression, and about the density.
  void begin(std::uint64_t step);
  /// This parameter's gradient will not change any more in this step.
  void ready(std::size_t parameter) noexcept;
  /// The backward pass is over: parameters without a gradient have one of 0. Returns when all sums
  /// are there; throws what went wrong in whichever thread.
  ReduceReport finish();
  /// After finish(): the sum over ranks, a part for each bucket, until the next step begins. What
  /// is whole lies in gradients(), to be zeroed by whoever has used it; the rest of gradients() is
  /// what was kept back.
  [[nodiscard]] std::span<const GradientPart> sums() const noexcept { return sums_; }

  /// Residuals and what schemes remember, a State for each bucket; empty where nothing is kept.
  [[nodiscard]] std::vector<State> save() const;
  /// What save() gave before step `step`. Throws Error{invalid_argument} when it does not fit.
  void load(std::uint64_t step, const std::vector<State>& states);

 private:
  using Clock = std::chrono::steady_clock;
  struct Lane;  // one bucket's compressor and times

  [[nodiscard]] std::span<float> span_of(const Bucket& bucket) const noexcept;
  void enter_stage(std::size_t stage);
  void save(const Lane& lane, State& state) const;
  void load(std::size_t bucket, const State& state);
  void run(std::size_t bucket);
  void trace(std::size_t bucket);
  void run_in_thread();
  [[nodiscard]] bool thread_may_run() const noexcept;
  void run_rest();
  ReduceReport report(Clock::time_point backward_end) const;

  Communicator& communicator_;
  const BucketPlan& plan_;
  ReducerOptions options_;
  ReduceMeter meter_;
  SharedBuffer shared_;
  std::vector<float> own_;  // where ranks share no memory
  std::span<float> flat_;
  std::vector<Lane> lanes_;
  std::vector<GradientPart> sums_;
  std::optional<std::size_t> stage_;
  std::uint64_t step_ = 0;
  bool compresses_ = false;  // in this step

  // Of this step; the thread and its owner share them under the mutex.
  std::vector<std::size_t> missing_;  // gradients that each bucket waits for; the owner's alone
  std::mutex mutex_;
  std::condition_variable wake_thread_, wake_owner_;
  std::size_t ready_ = 0;     // buckets that may be sent, from the first of the plan on
  std::size_t next_ = 0;      // the first that is not done
  bool running_ = false;      // the thread is at `next_`
  bool thread_rests_ = true;  // the owner sends what is left
  bool stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace sinew
