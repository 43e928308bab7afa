// What a person sees while it trains, and what is left of it in the run's folder.
#pragma once

#include <chrono>
#include <cstdio>
#include <fstream>

#include "torch/options.hpp"

namespace sinew {

/// Rank 0 talks on stderr: one line in place on a terminal, a plain one now and then elsewhere.
/// Every worker writes its metrics, a JSON object a step, where the run has a folder.
class TrainProgress final : public TrainWatcher {
 public:
  TrainProgress(const TrainCommand& command, int rank, int size);
  ~TrainProgress() override;

  void on_step(const StepRecord& record) override;
  void on_saved(std::uint64_t step, const std::string& path) override;
  void on_warning(std::string_view text) override;
  void on_shrunk(int rank, int size) override;

  std::function<void()> each_step = [] {};  // may throw to leave

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool is_due(const StepRecord& record);
  void show(const StepRecord& record);
  void write_metrics(const StepRecord& record);
  void clear();

  const TrainCommand& command_;
  int rank_, size_;
  bool terminal_, shown_ = false;
  Clock::time_point begun_ = Clock::now(), last_{};
  std::uint64_t first_step_ = 0, shown_steps_ = 0, count_ = 0;
  StepRecord since_;  // sums since the last line
  std::ofstream metrics_;
};

/// The line of a step: `since` has sums over `steps` steps, which took `seconds` in all.
/// At most `width` columns.
std::string progress_line(const StepRecord& record, const StepRecord& since, std::uint64_t steps,
                          double seconds, int workers, std::size_t width);

}  // namespace sinew
