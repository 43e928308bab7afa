// How long a training step takes on more or fewer workers, and what limits it.
#pragma once

#include <memory>
#include <optional>

#include "model/cost_book.hpp"
#include "model/training_run.hpp"

namespace sinew {

/// One worker count and one scheme. Times in milliseconds.
struct StepPrediction {
  int workers = 1;
  std::string scheme{};
  std::string algorithm{};
  double compute_ms = 0;        // of one worker, alone
  double straggling_ms = 0;     // until the slowest worker has computed too
  double select_ms = 0;         // choosing what to send
  double slowed_ms = 0;         // computing, by what travels meanwhile
  double communication_ms = 0;  // of a synchronisation, hidden or not
  double exposed_ms = 0;        // of it, a step
  double step_ms = 0, low_ms = 0, high_ms = 0;
  double efficiency = 0;  // of the time in which one worker alone would have done it
  // What communication consists of; they add up to 1 where there is any.
  double alpha = 0, beta = 0, gamma = 0, wait = 0;
  double bytes_per_worker = 0, messages = 0;  // a synchronisation
  double lower_bound_ms = 0;                  // of a dense allreduce, for comparison
  double run_s = 0;                           // for as many samples as described; 0: not said
};

/// Answers questions about one run over one network, remembering what it simulated.
class StepPredictor {
 public:
  /// `known`: another one of which simulations over the same network are taken over.
  StepPredictor(const TrainingRun& run, const Network* given, std::vector<std::string> algorithms,
                const StepPredictor* known = nullptr);

  [[nodiscard]] StepPrediction at(int workers, std::string_view scheme);
  [[nodiscard]] StepPrediction at(int workers) { return at(workers, run_.scheme); }
  /// Every scheme that is modelled, fastest step first.
  [[nodiscard]] std::vector<StepPrediction> all_schemes(int workers);
  /// How far half_efficient() looks.
  static constexpr int kMostWorkers = 1 << 16;
  /// The largest count, doubling from `first`, at which half of a step is still computing; nothing
  /// when even `first` is not such a one.
  [[nodiscard]] std::optional<int> half_efficient(int first);

  [[nodiscard]] const TrainingRun& run() const noexcept { return run_; }
  [[nodiscard]] const Network& network() const noexcept { return outer_.network(); }
  [[nodiscard]] std::vector<std::string> left_out() const;

 private:
  Costed synchronised(int workers, std::string_view scheme, double bytes);
  Costed through_islands(int workers, std::string_view scheme, double bytes);
  Costed all_gathered(Collective collective, int workers, double bytes);
  [[nodiscard]] Sparsity sparsity(double bytes) const;
  Costed data_parallel(StepPrediction& step, double backward_ms);
  Costed sharded(StepPrediction& step, double forward_ms, double backward_ms);
  Costed experts(int workers);
  [[nodiscard]] std::vector<double> ready_times(double backward_ms) const;

  TrainingRun run_;
  CostBook outer_;
  std::unique_ptr<CostBook> inner_;  // of islands
};

/// Inputs of the run that change nothing at these worker counts: each is moved a little, and the
/// answers are compared.
std::vector<std::string> without_effect(StepPredictor& predictor, const Network* given,
                                        const std::vector<std::string>& algorithms,
                                        std::span<const std::string> inputs,
                                        std::span<const int> workers);

}  // namespace sinew
