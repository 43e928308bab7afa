#include "train/trainer.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include <sinew/error.hpp>
#include "base/counter_random.hpp"
#include "train/model_memory.hpp"
#include "train/restart.hpp"

namespace sinew {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::uint64_t kFirst = 10;  // steps that warm up
constexpr std::size_t kRecent = 20;   // steps whose losses make the loss at the end

std::uint64_t ns_since(SteadyClock::time_point begin) {
  return static_cast<std::uint64_t>((SteadyClock::now() - begin).count());
}
double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

class Training {
 public:
  Training(Communicator& communicator, Learner& learner, const Data& data,
           const TrainOptions& options, TrainWatcher& watcher)
      : communicator_(communicator),
        learner_(learner),
        data_(data),
        options_(options),
        watcher_(watcher),
        sampler_({data.train->samples(), global_batch(), options.seed, communicator.rank(),
                  communicator.size()}),
        plan_(agreed(plan_buckets(learner.parameters(), options.bucket_bytes), communicator)),
        reducer_(communicator, plan_,
                 {options.compression, options.overlap, options.measure, options.observer}),
        memory_(learner, plan_, reducer_),
        optimizer_(options.optimizer, plan_.elements),
        restart_(communicator, options, memory_, optimizer_, reducer_) {
    compare_parameters("before the first step");
    if (options.resume) {
      step_ = restart_.resume();
      compare_parameters("as loaded from the checkpoint");
    }
    result_.first_step = step_;
    last_saved_ = step_;
  }

  TrainResult run() {
    begun_ = SteadyClock::now();
    decide_end();
    while (step_ < end_) {
      one_step();
      if (step_ == result_.first_step + kFirst) warmed_up_ = SteadyClock::now();
      if (options_.check_every > 0 && step_ % options_.check_every == 0)
        compare_parameters(fmt::format("after step {}", step_));
      if (options_.save_every > 0 && step_ % options_.save_every == 0) save();
      if (step_ == next_look_) decide_end();
    }
    result_.seconds = seconds_since(begun_);
    if (step_ > result_.first_step + kFirst)
      result_.steady_steps_per_s =
          static_cast<double>(step_ - result_.first_step - kFirst) / seconds_since(warmed_up_);
    if (!options_.folder.empty() && last_saved_ != step_) save();
    conclude();
    return std::move(result_);
  }

 private:
  static BucketPlan agreed(BucketPlan plan, Communicator& communicator) {
    agree_on(plan, communicator);
    return plan;
  }
  [[nodiscard]] std::size_t global_batch() const {
    return options_.batch * options_.accumulate * static_cast<std::size_t>(communicator_.size());
  }

  // Sets the last step, or the step at which rank 0 looks at the clock again: ranks must stop
  // together, and a clock of each would not.
  void decide_end() {
    end_ = options_.steps > 0 ? options_.steps : options_.epochs * sampler_.steps_per_epoch();
    if (end_ > 0 || options_.seconds <= 0) return;
    const auto elapsed = seconds_since(begun_);
    const auto done = static_cast<double>(step_ - result_.first_step);
    const double left = done == 0 ? 1 : (options_.seconds - elapsed) / (elapsed / done);
    std::uint64_t more =
        left < 1 ? 0 : static_cast<std::uint64_t>(std::min(left, std::max(1.0, 2 * done)));
    communicator_.broadcast(std::span(&more, 1), 0);
    end_ = step_ + more;
    next_look_ = end_;
  }

  void one_step() {
    StepRecord record;
    record.step = step_;
    record.steps = end_;
    record.rate = rate_at(options_.rate, step_, end_);
    record.epoch = static_cast<double>(step_) / static_cast<double>(sampler_.steps_per_epoch());
    const auto begin = SteadyClock::now();
    reducer_.begin(step_);
    compute(record);
    record.communication = reducer_.finish();
    const auto reduced = SteadyClock::now();
    update(record);
    record.update_ns = ns_since(reduced);
    record.total_ns = ns_since(begin);
    ++step_;
    add_up(record);
    watcher_.on_step(record);
  }

  void compute(StepRecord& record) {
    auto begin = SteadyClock::now();
    sampler_.at(step_, share_);
    const float scale = 1.0F / static_cast<float>(share_.of_all);
    const auto key =
        random_key(options_.seed, step_, static_cast<std::uint64_t>(communicator_.rank()));
    const auto all = std::span<const std::uint32_t>(share_.samples);
    const Learner::Ready not_yet;
    const Learner::Ready ready = [this](std::size_t parameter) { reducer_.ready(parameter); };
    for (std::size_t first = 0; first < all.size(); first += options_.batch) {
      const auto part = all.subspan(first, std::min(options_.batch, all.size() - first));
      data_.train->fill(part, batch_);
      expect_after(first + part.size());
      record.data_ns += ns_since(begin);
      begin = SteadyClock::now();
      const bool is_last = first + part.size() == all.size();
      record.score += learner_.learn(batch_, scale, key + first, is_last ? ready : not_yet);
      record.compute_ns += ns_since(begin);
      begin = SteadyClock::now();
    }
  }

  // What the next pass will ask for: more of this step, or the first of the next.
  void expect_after(std::size_t done) {
    auto rest = std::span<const std::uint32_t>(share_.samples).subspan(done);
    if (rest.empty()) {
      sampler_.at(step_ + 1, next_share_);
      rest = next_share_.samples;
    }
    data_.train->expect(rest.first(std::min(options_.batch, rest.size())));
  }

  // Everything here is computed from sums that are the same on all ranks.
  void update(const StepRecord& record) {
    double scale = 1;
    if (options_.clip > 0) {
      const auto norm = norm_of(reducer_.gradients());
      if (norm > options_.clip) scale = options_.clip / norm;
    }
    if (optimizer_.step(memory_.parameters(), reducer_.gradients(), static_cast<float>(record.rate),
                        static_cast<float>(scale)))
      return;
    throw Error(Errc::invalid_argument,
                fmt::format("step {}: the gradient has a NaN or an infinity (loss of rank {}: {}); "
                            "try a lower --lr or --clip{}",
                            step_, communicator_.rank(),
                            record.score.loss / static_cast<double>(record.score.samples),
                            options_.folder.empty() ? "" : "; the last checkpoint stands"),
                {.rank = communicator_.rank()});
  }

  void add_up(const StepRecord& record) {
    const auto& c = record.communication;
    totals_.batches += record.score.samples > 0 ? 1 : 0;
    totals_.samples += static_cast<double>(record.score.samples);
    totals_.seconds += static_cast<double>(record.total_ns) / 1e9;
    totals_.data_s += static_cast<double>(record.data_ns) / 1e9;
    totals_.compute_s += static_cast<double>(record.compute_ns) / 1e9;
    totals_.update_s += static_cast<double>(record.update_ns) / 1e9;
    totals_.busy_s += static_cast<double>(c.busy_ns) / 1e9;
    totals_.hidden_s += static_cast<double>(c.hidden_ns) / 1e9;
    totals_.exposed_s += static_cast<double>(c.exposed_ns) / 1e9;
    totals_.waiting_s += static_cast<double>(c.waiting_ns) / 1e9;
    totals_.bytes_sent += static_cast<double>(c.bytes_sent);
    totals_.collectives += static_cast<double>(c.collectives);
    totals_.items += static_cast<double>(c.items);
    totals_.elements += static_cast<double>(c.elements);
    recent_.push_back(record.score);
    if (recent_.size() > kRecent) recent_.pop_front();
  }

  void compare_parameters(const std::string& when) {
    share_buffers();
    const auto mine = memory_.hash();
    result_.hashes.resize(static_cast<std::size_t>(communicator_.size()));
    communicator_.allgather(std::span<const std::uint64_t>(&mine, 1), std::span(result_.hashes));
    for (std::size_t rank = 1; rank < result_.hashes.size(); ++rank)
      if (result_.hashes[rank] != result_.hashes[0])
        throw Error(Errc::mismatch,
                    fmt::format("ranks 0 and {} have different parameters {}", rank, when),
                    {.rank = communicator_.rank(), .peer = static_cast<int>(rank)});
  }

  // Statistics of batch normalisation are of each rank's own samples; rank 0's are those that
  // count.
  void share_buffers() {
    if (!memory_.buffers().empty()) communicator_.broadcast(memory_.buffers(), 0);
  }

  void save() {
    share_buffers();
    restart_.save(step_, watcher_);
    last_saved_ = step_;
  }

  void evaluate() {
    const auto samples = data_.test->samples();
    const auto size = static_cast<std::size_t>(communicator_.size());
    std::vector<std::uint32_t> which;
    Score mine;
    for (auto first = options_.batch * static_cast<std::size_t>(communicator_.rank());
         first < samples; first += options_.batch * size) {
      which.clear();
      for (auto i = first; i < std::min(samples, first + options_.batch); ++i)
        which.push_back(static_cast<std::uint32_t>(i));
      data_.test->fill(which, batch_);
      mine += learner_.evaluate(batch_);
    }
    double sums[] = {mine.loss, static_cast<double>(mine.errors), static_cast<double>(mine.labels),
                     static_cast<double>(mine.samples)};
    communicator_.allreduce(std::span<double>(sums));
    result_.test = {sums[0], static_cast<std::uint64_t>(sums[1]),
                    static_cast<std::uint64_t>(sums[2]), static_cast<std::uint64_t>(sums[3])};
    result_.evaluated = true;
  }

  void conclude() {
    share_buffers();
    if (options_.evaluate) evaluate();
    compare_parameters("at the end");
    for (const auto& score : recent_) {
      totals_.loss += score.loss;
      totals_.loss_samples += static_cast<double>(score.samples);
    }
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    totals_.peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024;
    gather_totals();
    result_.steps = step_;
    result_.buckets = plan_.buckets.size();
    for (const auto& parameter : plan_.parameters) result_.parameters += parameter.elements();
  }

  void gather_totals() {
    constexpr auto kFields = sizeof(WorkerTotals) / sizeof(double);
    static_assert(sizeof(WorkerTotals) == kFields * sizeof(double));
    result_.workers.resize(static_cast<std::size_t>(communicator_.size()));
    communicator_.allgather(
        std::span<const double>(reinterpret_cast<const double*>(&totals_), kFields),
        std::span(reinterpret_cast<double*>(result_.workers.data()),
                  kFields * result_.workers.size()));
    double loss = 0, samples = 0;
    for (const auto& worker : result_.workers) {
      loss += worker.loss;
      samples += worker.loss_samples;
    }
    result_.loss = samples > 0 ? loss / samples : 0;
  }

  Communicator& communicator_;
  Learner& learner_;
  const Data& data_;
  const TrainOptions& options_;
  TrainWatcher& watcher_;
  Sampler sampler_;
  BucketPlan plan_;
  GradientReducer reducer_;
  ModelMemory memory_;
  Optimizer optimizer_;
  Restart restart_;
  std::uint64_t step_ = 0, end_ = 0, next_look_ = 0, last_saved_ = 0;
  SteadyClock::time_point begun_, warmed_up_;
  Share share_, next_share_;
  Batch batch_;
  WorkerTotals totals_;
  std::deque<Score> recent_;
  TrainResult result_;
};

}  // namespace

TrainResult train(Communicator& communicator, Learner& learner, const Data& data,
                  const TrainOptions& options, TrainWatcher& watcher) {
  if (options.batch == 0 || options.accumulate == 0)
    throw Error(Errc::invalid_argument, "--batch and --accumulate are at least 1");
  if (options.steps == 0 && options.epochs == 0 && !(options.seconds > 0))
    throw Error(Errc::invalid_argument, "how long? Say --steps, --epochs or --seconds");
  if (options.steps == 0 && options.epochs == 0 && options.rate.schedule == "cosine")
    throw Error(Errc::invalid_argument,
                "a cosine needs to know the last step: say --steps or --epochs");
  Training training(communicator, learner, data, options, watcher);
  return training.run();
}

}  // namespace sinew
