#include "train/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <thread>

#include <sinew/error.hpp>
#include "base/counter_random.hpp"
#include "train/evaluation.hpp"
#include "train/gradient_frame.hpp"
#include "train/letters.hpp"
#include "train/model_memory.hpp"
#include "train/restart.hpp"
#include "train/task_frame.hpp"

namespace sinew {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::uint64_t kFirst = 10;  // steps that warm up
constexpr std::size_t kRecent = 20;  // batches of each worker whose losses make the loss at the end

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

/// What both sides have: the model in flat memory, and its gradients beside.
class Seat {
 public:
  Seat(Communicator& communicator, Learner& learner, const TrainOptions& options)
      : alone_(communicator.split(communicator.rank())),
        plan_(plan_buckets(learner.parameters(), options.bucket_bytes)),
        reducer_(alone_, plan_, {.overlap = false, .measure = false}),
        memory_(learner, plan_, reducer_) {
    agree_on(plan_, communicator);
  }
  [[nodiscard]] std::span<float> parameters() { return memory_.parameters(); }
  [[nodiscard]] std::span<float> gradients() { return reducer_.gradients(); }
  [[nodiscard]] std::size_t elements() const { return plan_.elements; }
  [[nodiscard]] const BucketPlan& plan() const { return plan_; }
  ModelMemory& memory() { return memory_; }
  GradientReducer& reducer() { return reducer_; }

 private:
  Communicator alone_;
  BucketPlan plan_;
  GradientReducer reducer_;
  ModelMemory memory_;
};

std::uint64_t most_bytes(std::size_t elements, const Data& data, const TrainOptions& options) {
  std::uint64_t sample = 16;
  for (const auto extent : data.train->shape()) sample *= static_cast<std::uint64_t>(extent);
  return (elements + sample * options.batch * options.accumulate) * 16 + (1U << 20U);
}

class Worker {
 public:
  Worker(Communicator& communicator, Learner& learner, Seat& seat, const Data& data,
         const TrainOptions& options)
      : learner_(learner),
        seat_(seat),
        letters_(communicator, 0, most_bytes(seat.elements(), data, options)),
        packer_(seat.elements(),
                options.compression.is_dense() || options.compression.stages.empty()
                    ? 0
                    : options.compression.stages.front().density) {
    totals_.worker = communicator.rank() - 1;
  }

  WorkerTotals run() {
    const auto begun = SteadyClock::now();
    while (true) {
      const auto waits = SteadyClock::now();
      const auto task = read_task(letters_.receive(), batch_, seat_.parameters());
      const double waited = seconds_since(waits);
      if (task.stop) break;
      totals_.waiting_s += waited;
      totals_.exposed_s += waited;
      totals_.busy_s += waited;
      one_task(task);
    }
    letters_.finish_sending();
    totals_.seconds = seconds_since(begun);
    totals_.bytes_sent = static_cast<double>(letters_.bytes_sent());
    for (const auto& score : recent_) {
      totals_.loss += score.loss;
      totals_.loss_samples += static_cast<double>(score.samples);
    }
    totals_.measure_memory();
    return totals_;
  }

 private:
  void one_task(const WorkerTask& task) {
    auto begin = SteadyClock::now();
    const Learner::Ready nobody = [](std::size_t) {};  // an empty one: more passes follow
    const auto score = learner_.learn(batch_, task.scale, task.random_key, nobody);
    totals_.compute_s += seconds_since(begin);
    begin = SteadyClock::now();
    letters_.send(packer_.pack(seat_.gradients(), score));
    std::fill(seat_.gradients().begin(), seat_.gradients().end(), 0.0F);
    const double packed = seconds_since(begin);
    totals_.compress_s += packed;
    totals_.exposed_s += packed;
    totals_.busy_s += packed;
    totals_.batches += 1;
    totals_.samples += static_cast<double>(score.samples);
    totals_.items += static_cast<double>(packer_.items());
    totals_.elements += static_cast<double>(seat_.elements());
    recent_.push_back(score);
    if (recent_.size() > kRecent) recent_.pop_front();
  }

  Learner& learner_;
  Seat& seat_;
  Letters letters_;
  GradientPacker packer_;
  Batch batch_;
  WorkerTotals totals_;
  std::deque<Score> recent_;
};

class Server {
 public:
  Server(Communicator& communicator, Seat& seat, const Data& data, const TrainOptions& options,
         TrainWatcher& watcher)
      : seat_(seat),
        data_(data),
        options_(options),
        watcher_(watcher),
        workers_(static_cast<std::size_t>(communicator.size() - 1)),
        optimizer_(options.optimizer, seat.elements()) {
    const auto global = options.global_batch > 0 ? options.global_batch
                                                 : options.batch * options.accumulate * workers_;
    for (std::size_t w = 0; w < workers_; ++w) {
      samplers_.emplace_back(Sampling{data.train->samples(), global, options.seed,
                                      static_cast<int>(w), static_cast<int>(workers_)});
      letters_.push_back(std::make_unique<Letters>(communicator, static_cast<int>(w) + 1,
                                                   most_bytes(seat.elements(), data, options)));
    }
    done_.resize(workers_);
    busy_.resize(workers_);
    last_heard_.assign(workers_, SteadyClock::now());
    end_ = options.steps > 0 ? options.steps : options.epochs * samplers_[0].steps_per_epoch();
  }

  void run(TrainResult& result) {
    begun_ = SteadyClock::now();
    if (options_.stale == 0)
      while (!is_over(step_)) one_step();
    else
      run_stale();
    totals_.seconds = result.seconds = seconds_since(begun_);
    if (step_ > kFirst)
      result.steady_steps_per_s = static_cast<double>(step_ - kFirst) / seconds_since(warmed_up_);
    for (auto& letters : letters_)
      letters->send(write_task({.stop = true}, {}, seat_.parameters()));
    for (auto& letters : letters_) {
      letters->finish_sending();
      totals_.bytes_sent += static_cast<double>(letters->bytes_sent());
    }
    result.steps = step_;
    result.interrupted = interrupted_;
    totals_.worker = -1;
    totals_.measure_memory();
  }
  [[nodiscard]] const WorkerTotals& totals() const { return totals_; }
  Optimizer& optimizer() { return optimizer_; }

 private:
  bool is_over(std::uint64_t step) {
    interrupted_ |= options_.wants_end && options_.wants_end();
    if (interrupted_) return true;
    return end_ > 0 ? step >= end_ : seconds_since(begun_) >= options_.seconds;
  }

  void push(std::size_t w, std::uint64_t step) {
    samplers_[w].at(step, share_);
    const auto begin = SteadyClock::now();
    data_.train->fill(share_.samples, batch_);
    totals_.data_s += seconds_since(begin);
    letters_[w]->send(write_task({.step = step,
                                  .random_key = random_key(options_.seed, step, w),
                                  .scale = 1.0F / static_cast<float>(share_.of_all)},
                                 batch_, seat_.parameters()));
    busy_[w] = true;
    last_heard_[w] = SteadyClock::now();
  }

  // True: this worker's gradient is here.
  bool poll(std::size_t w) {
    if (letters_[w]->poll()) {
      busy_[w] = false;
      return true;
    }
    if (seconds_since(last_heard_[w]) > options_.silent_s)
      throw Error(Errc::timeout,
                  fmt::format("step {}: worker {} (rank {}) has sent no gradient for {:.0f} s",
                              step_, w, w + 1, options_.silent_s),
                  {.rank = 0, .peer = static_cast<int>(w) + 1});
    return false;
  }

  // Nothing has come: hand the core over, longer and longer.
  void rest(int& idle) {
    const auto begin = SteadyClock::now();
    if (++idle < 20)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(200, idle)));
    totals_.waiting_s += seconds_since(begin);
  }

  void one_step() {
    const auto begin = SteadyClock::now();
    for (std::size_t w = 0; w < workers_; ++w) push(w, step_);
    std::size_t missing = workers_;
    for (int idle = 0; missing > 0;) {
      const auto before = missing;
      for (std::size_t w = 0; w < workers_; ++w)
        if (busy_[w] && poll(w)) --missing;
      if (missing == before)
        rest(idle);
      else
        idle = 0;
    }
    // In the order of workers, so that a run can be repeated.
    Score score;
    for (auto& letters : letters_) score += add_gradient(letters->frame(), seat_.gradients());
    update(step_);
    tell(score, seconds_since(begin));
    if (++step_ == kFirst) warmed_up_ = SteadyClock::now();
  }

  // Whoever is done gets the next batch, unless the slowest is too far behind.
  void run_stale() {
    int idle = 0;
    bool over = false;
    while (true) {
      over = over || is_over(*std::max_element(done_.begin(), done_.end()));
      const auto slowest = *std::min_element(done_.begin(), done_.end());
      bool moved = false;
      for (std::size_t w = 0; w < workers_; ++w) {
        const bool is_done = over || (end_ > 0 && done_[w] >= end_);
        const bool catches_up = end_ > 0 && !interrupted_ && done_[w] < end_;
        if (!busy_[w] && (!is_done || catches_up) && done_[w] <= slowest + options_.stale) {
          push(w, done_[w]);
          moved = true;
        }
        if (!busy_[w] || !poll(w)) continue;
        const auto score = add_gradient(letters_[w]->frame(), seat_.gradients());
        update(done_[w]);
        ++done_[w];
        moved = true;
        note_progress(score);
      }
      if (std::none_of(busy_.begin(), busy_.end(), [](bool busy) { return busy; }) && !moved)
        return;
      if (moved)
        idle = 0;
      else
        rest(idle);
    }
  }

  // A step of all workers together is as many batches as there are workers.
  void note_progress(const Score& score) {
    since_ += score;
    if (++batches_ % workers_ != 0) return;
    tell(since_, 0);
    since_ = {};
    if (++step_ == kFirst) warmed_up_ = SteadyClock::now();
  }

  void update(std::uint64_t step) {
    const auto begin = SteadyClock::now();
    double scale = 1;
    if (options_.clip > 0) {
      const auto norm = norm_of(seat_.gradients());
      if (norm > options_.clip) scale = options_.clip / norm;
    }
    if (!optimizer_.step(seat_.parameters(), seat_.gradients(),
                         static_cast<float>(rate_at(options_.rate, step, end_)),
                         static_cast<float>(scale)))
      throw Error(Errc::invalid_argument,
                  fmt::format("step {}: the gradient has a NaN or an infinity; try a lower --lr or "
                              "--clip",
                              step));
    totals_.update_s += seconds_since(begin);
  }

  void tell(const Score& score, double seconds) {
    StepRecord record;
    record.step = step_;
    record.steps = end_;
    record.epoch = static_cast<double>(step_) / static_cast<double>(samplers_[0].steps_per_epoch());
    record.score = {score.loss / static_cast<double>(workers_), 0, 0, score.samples / workers_};
    record.rate = rate_at(options_.rate, step_, end_);
    record.total_ns = static_cast<std::uint64_t>(seconds * 1e9);
    watcher_.on_step(record);
  }

  Seat& seat_;
  const Data& data_;
  const TrainOptions& options_;
  TrainWatcher& watcher_;
  std::size_t workers_;
  Optimizer optimizer_;
  std::vector<Sampler> samplers_;                  // of each worker
  std::vector<std::unique_ptr<Letters>> letters_;  // to each worker
  std::vector<std::uint64_t> done_;                // batches of each worker
  std::vector<bool> busy_;
  std::vector<SteadyClock::time_point> last_heard_;
  std::uint64_t step_ = 0, end_ = 0, batches_ = 0;
  SteadyClock::time_point begun_, warmed_up_;
  bool interrupted_ = false;
  Score since_;
  Share share_;
  Batch batch_;
  WorkerTotals totals_;
};

void check(const Communicator& communicator, const TrainOptions& options) {
  if (communicator.size() < 2)
    throw Error(Errc::invalid_argument, "a server needs a worker: at least two processes");
  if (options.resume || options.save_every > 0 || options.elastic)
    throw Error(Errc::unsupported,
                "--mode server has no --resume, --save-every and --elastic; leave --mode out");
  if (options.batch == 0 || options.accumulate == 0)
    throw Error(Errc::invalid_argument, "--batch and --accumulate are at least 1");
  if (options.steps == 0 && options.epochs == 0 && !(options.seconds > 0))
    throw Error(Errc::invalid_argument, "how long? Say --steps, --epochs or --seconds");
}

}  // namespace

TrainResult train_with_server(Communicator& communicator, Learner& learner, const Data& data,
                              const TrainOptions& options, TrainWatcher& watcher) {
  check(communicator, options);
  Seat seat(communicator, learner, options);
  TrainResult result;
  WorkerTotals mine;
  if (communicator.rank() == 0) {
    Server server(communicator, seat, data, options, watcher);
    server.run(result);
    mine = server.totals();
  } else {
    mine = Worker(communicator, learner, seat, data, options).run();
  }
  // Statistics of batch normalisation are of who has learned.
  if (const auto buffers = seat.memory().buffers(); !buffers.empty())
    communicator.broadcast(buffers, 1);
  if (options.evaluate) {
    result.test = evaluate(communicator, learner, *data.test, options.batch);
    result.evaluated = true;
  }
  result.workers = gather(communicator, mine);
  result.server = result.workers.front();
  result.workers.erase(result.workers.begin());
  const auto hash = seat.memory().hash();
  result.hashes.resize(static_cast<std::size_t>(communicator.size()));
  communicator.allgather(std::span<const std::uint64_t>(&hash, 1), std::span(result.hashes));
  for (const auto other : result.hashes)
    if (other != result.hashes.front())
      throw Error(Errc::mismatch, "server and workers have different parameters at the end");
  double loss = 0, samples = 0;
  for (const auto& worker : result.workers) {
    loss += worker.loss;
    samples += worker.loss_samples;
  }
  result.loss = samples > 0 ? loss / samples : 0;
  result.buckets = 1;
  for (const auto& parameter : seat.plan().parameters) result.parameters += parameter.elements();
  return result;
}

}  // namespace sinew
