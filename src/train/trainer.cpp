#include "train/trainer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include <sinew/error.hpp>
#include "base/counter_random.hpp"
#include "train/evaluation.hpp"
#include "train/group.hpp"
#include "train/model_memory.hpp"
#include "train/restart.hpp"

namespace sinew {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::uint64_t kFirst = 10;   // steps that warm up
constexpr std::size_t kRecent = 20;    // steps whose losses make the loss at the end
constexpr double kBetweenLooks = 0.5;  // seconds between two questions whether to go on
constexpr std::uint64_t kVote = 0x766F7465;

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

/// Times what comes one after the other, and notes it in the trace.
class Stopwatch {
 public:
  Stopwatch(TrainTrace* trace, std::uint64_t step)
      : trace_(trace), step_(step), begin_(trace_now()) {}
  /// Nanoseconds since the last call.
  std::uint64_t lap(TrainPart part) {
    const auto begin = begin_;
    begin_ = trace_now();
    if (trace_ != nullptr) trace_->add(part, begin, begin_, step_);
    return begin_ - begin;
  }

 private:
  TrainTrace* trace_;
  std::uint64_t step_, begin_;
};

class Training {
 public:
  Training(Communicator& communicator, Learner& learner, const Data& data,
           const TrainOptions& options, TrainWatcher& watcher)
      : communicator_(communicator),
        group_(communicator),
        learner_(learner),
        data_(data),
        options_(options),
        watcher_(watcher),
        global_batch_(options.global_batch > 0 ? options.global_batch
                                               : options.batch * options.accumulate *
                                                     static_cast<std::size_t>(communicator.size())),
        sampler_(sampling()),
        plan_(plan_buckets(learner.parameters(), options.bucket_bytes)),
        optimizer_(options.optimizer, plan_.elements) {
    totals_.worker = group_.me();
  }

  TrainResult run() {
    while (true) try {
        if (!is_prepared_) prepare();
        look();
        while (step_ < end_) {
          one_step();
          after_step();
        }
        return conclude();
      } catch (const Error& error) {
        if (!is_loss(error)) throw;
        if (!options_.elastic) throw told_where(error);
        recover(error);
      }
  }

 private:
  // Everything up to the first step. Begun again by all where a worker is lost before all have come
  // here: nobody can have taken a step then.
  void prepare() {
    agree_on(plan_, communicator_);
    gather_gradients();
    compare_parameters("before the first step");
    if (options_.resume) {
      step_ = restart_->resume();
      compare_parameters("as loaded from the checkpoint");
    }
    result_.first_step = step_;
    last_saved_ = step_;
    begun_ = SteadyClock::now();
    is_prepared_ = true;
  }

  // What belongs to the group as it is now.
  void gather_gradients() {
    sampler_ = Sampler(sampling());
    // All ranks keep what they do not send in the same way, so that all take the same steps.
    std::int32_t together = learner_.accumulates() ? 1 : 0;
    communicator_.allreduce(std::span(&together, 1), ReduceOp::min);
    reducer_.emplace(communicator_, plan_, reducer_options(together != 0));
    std::fill(reducer_->gradients().begin(), reducer_->gradients().end(), 0.0F);
    if (memory_)
      memory_->move_gradients(learner_, *reducer_);
    else
      memory_.emplace(learner_, plan_, *reducer_);
    restart_.emplace(communicator_, options_, global_batch_, *memory_, optimizer_, *reducer_);
    if (communicator_.rank() == 0) restart_->tidy();
  }

  [[nodiscard]] Sampling sampling() const {
    return {data_.train->samples(), global_batch_, options_.seed, communicator_.rank(),
            communicator_.size()};
  }
  [[nodiscard]] ReducerOptions reducer_options(bool together) const {
    return {options_.compression, options_.overlap, together,
            options_.measure,     nullptr,          options_.trace};
  }

  [[nodiscard]] bool by_clock() const { return options_.steps == 0 && options_.epochs == 0; }

  // Sets the last step, and the step at which rank 0 looks at the clock again: ranks must stop
  // together, and a clock of each, or a signal to each, would not.
  void look() {
    if (!by_clock())
      end_ = options_.steps > 0 ? options_.steps : options_.epochs * sampler_.steps_per_epoch();
    next_look_ = end_;
    if (!by_clock() && !options_.wants_end) return;
    const auto elapsed = seconds_since(begun_);
    const auto done = static_cast<double>(step_ - result_.first_step);
    const auto steps_in = [&](double seconds) { return done == 0 ? 1 : seconds * done / elapsed; };
    double more = std::max(1.0, 2 * done);
    if (options_.wants_end) more = std::min(more, std::max(1.0, steps_in(kBetweenLooks)));
    if (by_clock()) more = std::min(more, steps_in(options_.seconds - elapsed));
    const bool ends = options_.wants_end && options_.wants_end();
    std::uint64_t word[] = {more < 1 ? 0 : static_cast<std::uint64_t>(more), ends ? 1U : 0U};
    communicator_.broadcast(std::span<std::uint64_t>(word), 0);
    if (by_clock()) end_ = step_ + word[0];
    next_look_ = step_ + word[0];
    if (word[1] == 0) return;
    result_.interrupted = true;
    end_ = step_;
  }

  void one_step() {
    StepRecord record;
    record.step = step_;
    record.steps = end_;
    record.rate = rate_at(options_.rate, step_, end_);
    record.epoch = static_cast<double>(step_) / static_cast<double>(sampler_.steps_per_epoch());
    Stopwatch whole(options_.trace, step_);
    if (options_.elastic) undo_ = reducer_->save();
    in_step_ = true;
    reducer_->begin(step_);
    compute(record);
    Stopwatch watch(options_.trace, step_);
    record.communication = reducer_->finish();
    watch.lap(TrainPart::wait);
    // Whoever comes past this knows that all ranks have all sums; where one does not, those who
    // are left find out who did (recover).
    has_sums_ = true;
    if (options_.clip > 0) norm_ = norm_of(reducer_->sums());
    if (options_.elastic && communicator_.size() > 1) {
      communicator_.barrier({.tag = kVote});
      record.communication.exposed_ns += watch.lap(TrainPart::vote);
    }
    update(reducer_->sums(), record.score);
    record.update_ns = watch.lap(TrainPart::update);
    record.total_ns = whole.lap(TrainPart::step);
    totals_.add(record);
    if (record.communication.compressed) {
      sparse_items_ += record.communication.items;
      sparse_elements_ += record.communication.elements;
    }
    recent_.push_back(record.score);
    if (recent_.size() > kRecent) recent_.pop_front();
    watcher_.on_step(record);
  }

  void compute(StepRecord& record) {
    Stopwatch watch(options_.trace, step_);
    sampler_.at(step_, share_);
    const float scale = 1.0F / static_cast<float>(share_.of_all);
    const auto key =
        random_key(options_.seed, step_, static_cast<std::uint64_t>(communicator_.rank()));
    const auto all = std::span<const std::uint32_t>(share_.samples);
    const Learner::Ready not_yet;
    const Learner::Ready ready = [this](std::size_t parameter) { reducer_->ready(parameter); };
    learner_.backward_begins = [&] { record.compute_ns += watch.lap(TrainPart::forward); };
    // As few passes as fit, of equal length.
    const auto passes = (all.size() + options_.batch - 1) / options_.batch;
    for (std::size_t pass = 0; pass < passes; ++pass) {
      const auto first = all.size() * pass / passes, end = all.size() * (pass + 1) / passes;
      data_.train->fill(all.subspan(first, end - first), batch_);
      expect_after(pass + 1, passes);
      record.data_ns += watch.lap(TrainPart::data);
      const bool is_last = pass + 1 == passes;
      record.score += learner_.learn(batch_, scale, key + first, is_last ? ready : not_yet);
      record.compute_ns += watch.lap(TrainPart::backward);
    }
    learner_.backward_begins = [] {};
  }

  // What the next pass will ask for: more of this step, or the first of the next.
  void expect_after(std::size_t done, std::size_t passes) {
    const auto part = [&](const Share& share, std::size_t pass, std::size_t of) {
      const auto all = std::span<const std::uint32_t>(share.samples);
      const auto first = all.size() * pass / of;
      return all.subspan(first, all.size() * (pass + 1) / of - first);
    };
    if (done < passes) return data_.train->expect(part(share_, done, passes));
    sampler_.at(step_ + 1, next_share_);
    const auto next = (next_share_.samples.size() + options_.batch - 1) / options_.batch;
    if (next > 0) data_.train->expect(part(next_share_, 0, next));
  }

  // Everything here is computed from sums that are the same on all ranks. The step is taken then.
  void update(std::span<const GradientPart> gradient, const Score& score) {
    const bool clips = options_.clip > 0 && norm_ > options_.clip;
    const double scale = clips ? options_.clip / norm_ : 1;
    const auto rate = rate_at(options_.rate, step_, end_);
    if (!optimizer_.step(memory_->parameters(), gradient, static_cast<float>(rate),
                         static_cast<float>(scale)))
      throw Error(
          Errc::invalid_argument,
          fmt::format("step {}: the gradient has a NaN or an infinity (loss of rank {}: "
                      "{}); try a lower --lr or --clip{}",
                      step_, communicator_.rank(), score.loss / static_cast<double>(score.samples),
                      options_.folder.empty() ? "" : "; the last checkpoint stands"),
          {.rank = communicator_.rank()});
    ++step_;
    in_step_ = has_sums_ = false;
  }

  void after_step() {
    if (step_ == result_.first_step + kFirst) warmed_up_ = SteadyClock::now();
    if (options_.check_every > 0 && step_ % options_.check_every == 0)
      compare_parameters(fmt::format("after step {}", step_));
    if (options_.save_every > 0 && step_ % options_.save_every == 0) save();
    if (step_ == next_look_ && (by_clock() || step_ < end_)) look();
  }

  [[nodiscard]] Error told_where(const Error& error) const {
    const auto saved = options_.folder.empty() ? std::string("no checkpoint was asked for (-o)")
                       : last_saved_ == 0
                           ? std::string("there is no checkpoint yet")
                           : fmt::format("the checkpoint of step {} stands", last_saved_);
    return {error.code(),
            fmt::format("step {}: {}; {}; --elastic goes on without a lost worker", step_,
                        error.what(), saved),
            error.context()};
  }

  // Those who are left take the same steps: the one under way is taken by all if one of them has
  // taken it, for then all ranks had its sums; otherwise all begin it again, as if it had never
  // been begun.
  void recover(const Error& error) {
    std::vector<float> sums;  // out of memory that goes with the old group
    if (has_sums_) {
      sums.resize(plan_.elements);
      write_parts(reducer_->sums(), sums);
    }
    auto kept = !is_prepared_ || (in_step_ && !has_sums_) ? std::vector<State>{} : reducer_->save();
    const auto rejoined = rejoin(error);
    is_prepared_ = is_prepared_ && rejoined.all_prepared;
    const GradientPart whole{.whole = sums};
    if (rejoined.steps > step_)
      update(std::span(&whole, 1), {});
    else if (in_step_)
      kept = std::move(undo_);
    in_step_ = has_sums_ = false;
    note_lost(rejoined);
    if (is_prepared_) rebuild(kept);
  }

  WorkerGroup::Rejoined rejoin(const Error& error) {
    restart_.reset();
    reducer_.reset();
    auto rejoined = group_.rejoin({step_, is_prepared_}, error);
    if (options_.trace != nullptr) options_.trace->resize(communicator_.size());
    watcher_.on_shrunk(communicator_.rank(), communicator_.size());
    return rejoined;
  }

  void note_lost(const WorkerGroup::Rejoined& rejoined) {
    for (const int worker : rejoined.lost) result_.lost.push_back({worker, step_});
    if (communicator_.rank() == 0)
      watcher_.on_warning(fmt::format("worker {} is gone ({}); step {} goes on with {} left",
                                      fmt::join(rejoined.lost, ", "), rejoined.story, step_,
                                      communicator_.size()));
  }

  void rebuild(const std::vector<State>& kept) try {
    gather_gradients();
    reducer_->load(step_, kept);
  } catch (const Error& error) {
    if (!is_loss(error)) throw;
    note_lost(rejoin(error));
    rebuild(kept);
  }

  void compare_parameters(const std::string& when) {
    share_buffers();
    const auto mine = memory_->hash();
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
    if (!memory_->buffers().empty()) communicator_.broadcast(memory_->buffers(), 0);
  }

  void save() {
    Stopwatch watch(options_.trace, step_);
    share_buffers();
    if (restart_->save(step_, watcher_)) last_saved_ = step_;
    watch.lap(TrainPart::save);
  }

  TrainResult conclude() {
    if (result_.seconds == 0) measure_rate();
    if (!options_.folder.empty() && last_saved_ != step_) save();
    share_buffers();
    if (options_.evaluate && !result_.interrupted) {
      Stopwatch watch(options_.trace, step_);
      result_.test = evaluate(communicator_, learner_, *data_.test, options_.batch);
      result_.evaluated = true;
      watch.lap(TrainPart::evaluate);
    }
    compare_parameters("at the end");
    totals_.loss = totals_.loss_samples = 0;
    for (const auto& score : recent_) {
      totals_.loss += score.loss;
      totals_.loss_samples += static_cast<double>(score.samples);
    }
    totals_.measure_memory();
    result_.workers = gather(communicator_, totals_);
    double loss = 0, samples = 0;
    for (const auto& worker : result_.workers) {
      loss += worker.loss;
      samples += worker.loss_samples;
    }
    result_.loss = samples > 0 ? loss / samples : 0;
    result_.steps = step_;
    result_.buckets = plan_.buckets.size();
    result_.parameters = 0;
    for (const auto& parameter : plan_.parameters) result_.parameters += parameter.elements();
    if (options_.trace != nullptr) note_compression();
    return std::move(result_);
  }

  void note_compression() {
    auto& trace = *options_.trace;
    trace.note("dense_bytes", std::to_string(result_.parameters * sizeof(float)));
    if (options_.compression.is_dense()) return;
    trace.note("scheme", options_.compression.scheme);
    if (!options_.compression.stages.empty())
      trace.note("density", std::to_string(options_.compression.stages.back().density));
    if (sparse_elements_ > 0)
      trace.note("realised_density", std::to_string(static_cast<double>(sparse_items_) /
                                                    static_cast<double>(sparse_elements_)));
  }

  void measure_rate() {
    result_.seconds = seconds_since(begun_);
    if (step_ > result_.first_step + kFirst)
      result_.steady_steps_per_s =
          static_cast<double>(step_ - result_.first_step - kFirst) / seconds_since(warmed_up_);
  }

  Communicator& communicator_;
  WorkerGroup group_;
  Learner& learner_;
  const Data& data_;
  const TrainOptions& options_;
  TrainWatcher& watcher_;
  std::size_t global_batch_;
  Sampler sampler_;
  BucketPlan plan_;
  Optimizer optimizer_;
  // Of the group as it is; made again when it shrinks.
  std::optional<GradientReducer> reducer_;
  std::optional<ModelMemory> memory_;
  std::optional<Restart> restart_;
  std::uint64_t step_ = 0, end_ = 0, next_look_ = 0, last_saved_ = 0;
  bool is_prepared_ = false;
  // How far the step under way has come, and what was kept back before it.
  bool in_step_ = false, has_sums_ = false;
  double norm_ = 0;  // of the sums, where they are clipped
  std::vector<State> undo_;
  SteadyClock::time_point begun_, warmed_up_;
  Share share_, next_share_;
  Batch batch_;
  WorkerTotals totals_;
  std::uint64_t sparse_items_ = 0, sparse_elements_ = 0;  // of compressed steps
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
