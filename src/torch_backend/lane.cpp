#include "torch_backend/lane.hpp"

#include <algorithm>
#include <utility>

#include "transport/decorated.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
// A task may come that lets an open message go on: whoever waits for messages looks so often.
constexpr std::chrono::nanoseconds kLook = 200us;
constexpr std::size_t kMostThreads = 16;

}  // namespace

/// Waits end when somebody in another thread wants them to. Only the waiting thread touches the
/// transport: others leave a word.
class Lane::Abortable final : public Decorated {
 public:
  using Decorated::Decorated;
  void request(std::string why) {
    const std::scoped_lock lock(mutex_);
    if (!requested_.load(std::memory_order_relaxed)) why_ = std::move(why);
    requested_.store(true, std::memory_order_release);  // pairs with the acquire in park()
  }
  Progress park(bool moved, Deadline deadline) noexcept override {
    if (requested_.load(std::memory_order_acquire)) [[unlikely]]
      return give_up();
    return inner().park(moved, deadline);
  }
  std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                    Deadline deadline) override {
    return inner().subset(members, label, deadline);
  }

 private:
  Progress give_up() noexcept {
    const std::scoped_lock lock(mutex_);
    poison({Errc::peer_lost, rank(), why_});
    return Progress::failed;
  }
  std::atomic<bool> requested_{false};
  std::mutex mutex_;
  std::string why_;
};

namespace {
thread_local bool is_lane_thread = false;
std::mutex all_mutex;
std::vector<std::weak_ptr<Lane>> all_lanes;
}  // namespace

std::shared_ptr<Lane> Lane::make(std::unique_ptr<Transport> transport, const Options& options) {
  std::shared_ptr<Lane> made(new Lane(std::move(transport), options), [](Lane* lane) {
    if (is_lane_thread)
      std::thread([lane] { delete lane; }).detach();
    else
      delete lane;
  });
  const std::scoped_lock lock(all_mutex);
  std::erase_if(all_lanes, [](const auto& lane) { return lane.expired(); });
  all_lanes.push_back(made);
  return made;
}

void Lane::stop_all() {
  std::vector<std::weak_ptr<Lane>> lanes;
  {
    const std::scoped_lock lock(all_mutex);
    lanes.swap(all_lanes);
  }
  for (const auto& each : lanes)
    if (const auto lane = each.lock()) lane->stop();
}

Lane::Lane(std::unique_ptr<Transport> transport, const Options& options)
    : timeout_(options.timeout), communicator_([&] {
        auto abortable = std::make_unique<Abortable>(std::move(transport));
        abortable_ = abortable.get();
        return Communicator(std::move(abortable), options);
      }()) {
  threads_.emplace_back([this] { run_thread(); });
}

void Lane::stop() {
  std::unique_lock lock(mutex_);
  stop_ = true;
  issued_.notify_all();
  while (!threads_.empty()) {
    auto thread = std::move(threads_.back());
    threads_.pop_back();
    lock.unlock();
    thread.join();
    lock.lock();
  }
}

void Lane::issue(LaneTask task, bool waited_for) {
  const std::scoped_lock lock(mutex_);
  tasks_.push_back(std::move(task));
  if (!is_free()) advanced_.notify_one();
  if (is_free() && !waited_for) wake_thread();
}

void Lane::wake_thread() {
  if (idle_ == 0 && threads_.size() < kMostThreads && !stop_)
    threads_.emplace_back([this] { run_thread(); });
  else
    issued_.notify_one();
}

void Lane::abort(const std::string& why) { abortable_->request(why); }

void Lane::run_thread() {
  is_lane_thread = true;
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    issued_.wait(lock, [&] { return is_free() && (stop_ || has_work()); });
    --idle_;
    if (!has_work()) return;
    int none = 0;
    progress(lock, none);
  }
}

bool Lane::help_until(const std::function<bool()>& done, Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  ++helpers_;
  while (!done() && Clock::now() < deadline) {
    if (!busy_ && has_work())
      progress(lock, helpers_);
    else
      advanced_.wait_until(lock, std::min(deadline, Clock::now() + 100ms));
  }
  --helpers_;
  if (is_free() && (has_work() || stop_)) wake_thread();
  lock.unlock();
  return done();
}

// One task, or a look at the messages; the communicator belongs to this thread meanwhile. Who hears
// of the end may do anything, so that by then this thread counts no more among those who help.
void Lane::progress(std::unique_lock<std::mutex>& lock, int& helps) {
  std::vector<Ended> ended;
  busy_ = true;
  if (tasks_.empty()) {
    lock.unlock();
    poll_messages(ended);
  } else {
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    run(std::move(task), ended);
  }
  lock.lock();
  busy_ = false;
  if (helpers_ > 0) advanced_.notify_all();
  if (ended.empty()) return;
  const int before = std::exchange(helps, std::max(0, helps - 1));
  if (is_free() && has_work()) wake_thread();
  lock.unlock();
  for (auto& [task, failure] : ended) task.finish(failure);
  lock.lock();
  helps += before > 0 ? 1 : 0;
  advanced_.notify_all();
}

void Lane::run(LaneTask task, std::vector<Ended>& ended) {
  std::exception_ptr failure;
  try {
    const auto request = task.begin(communicator_);
    if (request.kind == Request::Kind::message && !communicator_.test(request)) {
      const auto limit = task.timeout.count() > 0 ? task.timeout : timeout_;
      messages_.push_back({std::move(task), request, Clock::now() + limit});
      return;
    }
  } catch (...) {
    failure = std::current_exception();
  }
  ended.push_back({std::move(task), failure});
}

void Lane::poll_messages(std::vector<Ended>& ended) {
  for (std::size_t i = 0; i < messages_.size();) {
    auto& message = messages_[i];
    std::exception_ptr failure;
    try {
      const bool last = i + 1 == messages_.size();
      if (!wait_a_little(message.request, last ? kLook : 0ns)) {
        if (Clock::now() > message.deadline) expire(message);
        ++i;
        continue;
      }
    } catch (...) {
      failure = std::current_exception();
    }
    ended.push_back({std::move(message.task), failure});
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

bool Lane::wait_a_little(Request request, std::chrono::nanoseconds patience) {
  const auto until = Clock::now() + patience;
  while (!communicator_.test(request)) {
    if (Clock::now() >= until) return false;
    if (abortable_->park(/*moved=*/false, until) != Progress::failed) continue;
    const auto failure = abortable_->failure();
    throw Error(failure.code,
                "rank " + std::to_string(communicator_.rank()) + ", point-to-point: " + failure.why,
                {.rank = communicator_.rank(), .peer = failure.peer, .operation = "message"});
  }
  abortable_->park(/*moved=*/true, until);
  return true;
}

// The message may be half way: nothing after it would be understood.
void Lane::expire(const Message& message) {
  const auto limit = message.task.timeout.count() > 0 ? message.task.timeout : timeout_;
  const auto why =
      "rank " + std::to_string(communicator_.rank()) + ": a message did not finish within " +
      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()) + " ms";
  abortable_->poison({Errc::timeout, communicator_.rank(), why});
  throw Error(Errc::timeout, why, {.rank = communicator_.rank(), .operation = "message"});
}

}  // namespace sinew
