#include "train/reducer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sinew/error.hpp>
#include "base/roles.hpp"

namespace sinew {
namespace {

std::uint64_t in_ns(std::chrono::steady_clock::time_point time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

}  // namespace

void ReduceMeter::on_event(const Event& event) noexcept {
  if (event.kind == EventKind::collective) {
    ++collectives;
    waiting_ns += event.waiting_ns;
  }
  if (next != nullptr) next->on_event(event);
}

struct GradientReducer::Lane {
  std::optional<Compressor> compressor;
  std::unique_ptr<AccumulatedGradient> together;  // with what was kept back, where that can be
  Clock::time_point begin, end;
  std::uint64_t bytes_sent = 0, items = 0, compress_ns = 0;
};

GradientReducer::GradientReducer(Communicator& communicator, const BucketPlan& plan,
                                 ReducerOptions options)
    : communicator_(communicator),
      plan_(plan),
      options_(std::move(options)),
      lanes_(plan.buckets.size()),
      sums_(plan.buckets.size()),
      missing_(plan.buckets.size()) {
  const auto bytes = std::max<std::size_t>(1, plan.elements) * sizeof(float);
  try {
    shared_ = communicator.alloc_shared(bytes);
    flat_ = shared_.as<float>().first(plan.elements);
  } catch (const Error& error) {
    if (error.code() != Errc::unsupported) throw;
    own_.resize(plan.elements);
    flat_ = own_;
  }
  meter_.next = options_.trace != nullptr ? options_.trace : options_.observer;
  if (options_.measure || meter_.next != nullptr) communicator.observe(&meter_);
  for (std::size_t i = 0; options_.trace != nullptr && i < plan.buckets.size(); ++i)
    options_.trace->name_tag(plan.tag(i), fmt::format("bucket {}", i));
  // Alone there is nothing to send, and the last bucket is never sent by the thread.
  if (options_.overlap && communicator.size() > 1 && plan.buckets.size() > 1)
    thread_ = std::thread([this] { run_in_thread(); });
}

GradientReducer::~GradientReducer() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  wake_thread_.notify_one();
  if (thread_.joinable()) thread_.join();
  communicator_.observe(nullptr);
}

std::span<float> GradientReducer::gradient(std::size_t parameter) const noexcept {
  return flat_.subspan(plan_.first_of[parameter], plan_.parameters[parameter].elements());
}
std::span<float> GradientReducer::span_of(const Bucket& bucket) const noexcept {
  return flat_.subspan(bucket.first, bucket.elements);
}

// Another density is another compressor that takes over what the last one kept.
void GradientReducer::enter_stage(std::size_t stage) {
  const auto& scheme = find_scheme(options_.compression.scheme);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    std::vector<TensorSpec> layout;
    for (const auto parameter : plan_.buckets[i].tensors)
      layout.push_back(plan_.parameters[parameter]);
    Compressor next(communicator_, scheme, std::move(layout), options_.compression.options(stage));
    auto& [compressor, together, begin, end, bytes_sent, items, compress_ns] = lanes_[i];
    const auto place = span_of(plan_.buckets[i]);
    State kept;
    if (compressor) save(lanes_[i], kept);
    const bool goes_on = compressor.has_value();
    compressor.emplace(std::move(next));
    if (options_.accumulates && scheme.far) together = std::make_unique<AccumulatedGradient>(place);
    if (goes_on) load(i, kept);
  }
  stage_ = stage;
}

void GradientReducer::begin(std::uint64_t step) {
  const auto& spec = options_.compression;
  compresses_ = !spec.is_dense() && step >= spec.warmup;
  if (compresses_ && stage_ != spec.stage_at(step)) enter_stage(spec.stage_at(step));
  if (options_.trace != nullptr)
    options_.trace->enter(compresses_ ? TrainPhase::sparse : TrainPhase::dense);
  step_ = step;
  meter_.waiting_ns = meter_.collectives = 0;
  for (std::size_t i = 0; i < missing_.size(); ++i) missing_[i] = plan_.buckets[i].tensors.size();
  const std::scoped_lock lock(mutex_);
  ready_ = next_ = 0;
  thread_rests_ = false;
}

void GradientReducer::ready(std::size_t parameter) noexcept {
  const auto bucket = plan_.bucket_of[parameter];
  if (missing_[bucket] == 0 || --missing_[bucket] > 0 || !thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    while (ready_ < missing_.size() && missing_[ready_] == 0) ++ready_;
    if (!thread_may_run()) return;
  }
  wake_thread_.notify_one();
}

// The last bucket is complete when the backward pass is over: its owner is awake and has nothing
// else to do.
bool GradientReducer::thread_may_run() const noexcept {
  return !thread_rests_ && !running_ && !failure_ && next_ < ready_ &&
         next_ + 1 < plan_.buckets.size();
}

void GradientReducer::run_in_thread() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_thread_.wait(lock, [&] { return stop_ || thread_may_run(); });
    if (stop_) return;
    running_ = true;
    const auto bucket = next_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      run(bucket);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    running_ = false;
    if (failure) failure_ = failure;
    ++next_;
    if (thread_rests_) wake_owner_.notify_one();
  }
}

void GradientReducer::run(std::size_t index) {
  auto& lane = lanes_[index];
  const auto gradient = span_of(plan_.buckets[index]);
  lane.begin = Clock::now();
  if (options_.trace != nullptr) options_.trace->begin_bucket(in_ns(lane.begin));
  auto& sum = sums_[index] = {.first = plan_.buckets[index].first, .whole = gradient};
  if (compresses_) {
    const auto& report = lane.together ? lane.compressor->allreduce(*lane.together)
                                       : lane.compressor->allreduce(gradient);
    if (lane.together && !lane.together->was_dense()) {
      sum.whole = {};
      sum.elements = gradient.size();
      sum.items = lane.together->result();
    }
    lane.bytes_sent = report.sent_bytes();
    lane.items = report.items;
    lane.compress_ns = 0;
    for (std::size_t part = 0; part < kParts; ++part)
      if (static_cast<Part>(part) != Part::wire) lane.compress_ns += report.part_ns[part];
    for (const auto& bytes : report.bytes)
      if (options_.trace != nullptr)
        options_.trace->name_tag(role_tag(bytes.phase),
                                 fmt::format("{} {}", options_.compression.scheme, bytes.phase));
  } else {
    lane.compress_ns = 0;
    communicator_.allreduce(gradient, ReduceOp::sum, {.tag = plan_.tag(index)});
    lane.bytes_sent = communicator_.last_moved().sent;
    lane.items = gradient.size();
  }
  lane.end = Clock::now();
  if (options_.trace != nullptr) trace(index);
}

void GradientReducer::trace(std::size_t index) {
  const auto& lane = lanes_[index];
  options_.trace->end_bucket(in_ns(lane.end));
  options_.trace->add(TrainPart::bucket, in_ns(lane.begin), in_ns(lane.end), step_,
                      plan_.buckets[index].elements * sizeof(float), lane.bytes_sent,
                      plan_.tag(index));
}

void GradientReducer::run_rest() {
  std::unique_lock lock(mutex_);
  thread_rests_ = true;
  wake_owner_.wait(lock, [&] { return !running_; });
  if (failure_) std::rethrow_exception(failure_);
  lock.unlock();
  for (; next_ < plan_.buckets.size(); ++next_) run(next_);
}

ReduceReport GradientReducer::finish() {
  const auto backward_end = Clock::now();
  run_rest();
  return report(backward_end);
}

ReduceReport GradientReducer::report(Clock::time_point backward_end) const {
  ReduceReport report;
  const auto ns = [](Clock::duration duration) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(
        0, std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count()));
  };
  for (const auto& lane : lanes_) {
    report.busy_ns += ns(lane.end - lane.begin);
    report.hidden_ns += ns(std::min(lane.end, backward_end) - lane.begin);
    report.bytes_sent += lane.bytes_sent;
    report.items += lane.items;
    report.compress_ns += lane.compress_ns;
  }
  if (!lanes_.empty()) report.exposed_ns = ns(lanes_.back().end - backward_end);
  for (const auto& bucket : plan_.buckets) report.elements += bucket.elements;
  report.compressed = compresses_;
  report.waiting_ns = meter_.waiting_ns;
  report.collectives = meter_.collectives;
  return report;
}

std::vector<State> GradientReducer::save() const {
  std::vector<State> states;
  for (const auto& lane : lanes_) {
    if (!lane.compressor) return {};
    save(lane, states.emplace_back());
  }
  return states;
}

void GradientReducer::save(const Lane& lane, State& state) const {
  if (lane.together)
    lane.compressor->save(state, lane.together->kept());
  else
    lane.compressor->save(state);
}

void GradientReducer::load(std::size_t bucket, const State& state) {
  auto& lane = lanes_[bucket];
  lane.compressor->load(state);
  if (!lane.together) return;
  const auto place = span_of(plan_.buckets[bucket]);
  std::fill(place.begin(), place.end(), 0.0F);
  lane.compressor->hand_over(*lane.together);
}

void GradientReducer::load(std::uint64_t step, const std::vector<State>& states) {
  if (states.empty()) return;
  if (options_.compression.is_dense() || states.size() != lanes_.size())
    throw Error(Errc::invalid_argument,
                fmt::format("{} buckets were saved with residuals, but this run has {} of {}",
                            states.size(), lanes_.size(), options_.compression.scheme));
  // The density that was in force when it was saved: the step before.
  enter_stage(options_.compression.stage_at(step == 0 ? 0 : step - 1));
  for (std::size_t i = 0; i < lanes_.size(); ++i) load(i, states[i]);
}

}  // namespace sinew
