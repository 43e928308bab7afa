// The operations of one group, one after the other in the order in which they were issued: by a
// thread of their own, or by whoever waits for one of them. Knows nothing of torch.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <sinew/communicator.hpp>

namespace sinew {

/// What is done once a lane: a collective, a message, or anything else that uses the communicator.
struct LaneTask {
  /// Runs to the end, or starts a message and returns its request.
  std::function<Request(Communicator&)> begin;
  /// After the end, with what went wrong or null. Must not throw.
  std::function<void(std::exception_ptr)> finish;
  std::chrono::nanoseconds timeout{0};  // of a message
};

class Lane {
 public:
  /// Who lets go of the last reference may be a thread of a lane's own (garbage that Python
  /// collects there, say), which cannot wait for its own end: then another thread ends the lane.
  static std::shared_ptr<Lane> make(std::unique_ptr<Transport> transport, const Options& options);
  Lane(std::unique_ptr<Transport> transport, const Options& options);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() { stop(); }

  /// Finishes what was issued, and has no threads from then on; whatever cannot be finished fails
  /// by its deadline.
  void stop();
  /// Every lane there is: before an interpreter ends, which ends threads that ask for it.
  static void stop_all();

  /// `waited_for`: whoever issues it will call help_until() at once, so nobody else is woken.
  void issue(LaneTask task, bool waited_for = false);
  /// Returns when `done` says so, and works meanwhile. False: the deadline passed first.
  bool help_until(const std::function<bool()>& done, Clock::time_point deadline);
  /// From any thread: what is under way and what comes fails on all ranks.
  void abort(const std::string& why);

 private:
  struct Message {
    LaneTask task;
    Request request;
    Clock::time_point deadline;
  };
  struct Ended {
    LaneTask task;
    std::exception_ptr failure;
  };
  class Abortable;

  [[nodiscard]] bool has_work() const { return !tasks_.empty() || !messages_.empty(); }
  [[nodiscard]] bool is_free() const { return !busy_ && helpers_ == 0; }
  void run_thread();
  void wake_thread();
  void progress(std::unique_lock<std::mutex>& lock, int& helps);
  void run(LaneTask task, std::vector<Ended>& ended);
  void poll_messages(std::vector<Ended>& ended);
  bool wait_a_little(Request request, std::chrono::nanoseconds patience);
  void expire(const Message& message);

  Abortable* abortable_;  // the communicator's transport
  std::chrono::nanoseconds timeout_;
  Communicator communicator_;     // of whoever has made busy_ true
  std::deque<Message> messages_;  // likewise; begun, and not done
  std::mutex mutex_;
  std::condition_variable issued_, advanced_;
  std::deque<LaneTask> tasks_;
  bool busy_ = false;
  bool stop_ = false;
  int helpers_ = 0;  // who wait in help_until()
  int idle_ = 0;     // threads of ours that wait for work
  // One works; another is added only where all others are in somebody's finish(), which may wait
  // for what was issued after it.
  std::vector<std::thread> threads_;
};

}  // namespace sinew
