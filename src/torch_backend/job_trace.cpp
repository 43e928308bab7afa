#include "torch_backend/job_trace.hpp"

#include <map>
#include <mutex>

#include "runtime/environment.hpp"
#include "runtime/tracing.hpp"
#include "trace/recorder.hpp"

namespace sinew {
namespace {

constexpr std::uint16_t kStepRoutine = 1;

// Operations run in whichever thread waits for them, but are one sequence: so is their record.
class JobTrace final : public Observer {
 public:
  JobTrace(const std::string& folder, int rank, int size)
      : writer_({.path = trace_path(folder)}), log_(writer_) {
    note_process(writer_, rank, size);
    writer_.note(trace::NoteKind::routine, kStepRoutine, "optimizer_step");
  }

  void on_event(const Event& event) noexcept override {
    const std::scoped_lock lock(mutex_);
    auto key = trace::key_of(event);
    key.region = region_;
    const auto [slot, exact] = log_.find(key);
    if (!exact) {
      slot->more_sent += key.sent;
      slot->more_received += key.received;
    }
    log_.add(*slot, event.begin_ns, event.end_ns - event.begin_ns, event.waiting_ns,
             event.sequence);
  }

  void enter(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    if (name.empty()) {
      region_ = 0;
      return;
    }
    const auto next = static_cast<std::uint16_t>(regions_.size() + 1);
    const auto [entry, is_new] = regions_.try_emplace(name, next);
    if (is_new) writer_.note(trace::NoteKind::region, next, name);
    region_ = entry->second;
  }

 private:
  std::mutex mutex_;
  trace::Writer writer_;
  trace::ThreadLog log_;
  std::map<std::string, std::uint16_t> regions_;
  std::uint16_t region_ = 0;
};

// A process has one trace, for as long as any of its groups lives.
std::weak_ptr<JobTrace>& current() {
  static std::weak_ptr<JobTrace> trace;
  return trace;
}
std::mutex& opening() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

std::shared_ptr<Observer> process_trace(int rank, int size) {
  const std::scoped_lock lock(opening());
  if (auto trace = current().lock()) return trace;
  const auto folder = read_environment(process_environment()).trace;
  if (folder.empty()) return nullptr;
  auto trace = std::make_shared<JobTrace>(folder, rank, size);
  current() = trace;
  return trace;
}

void enter_phase(const std::string& name) {
  const std::scoped_lock lock(opening());
  if (const auto trace = current().lock()) trace->enter(name);
}

void mark_step(std::uint64_t begin_ns, std::uint64_t end_ns) {
  const std::scoped_lock lock(opening());
  const auto trace = current().lock();
  if (trace == nullptr) return;
  Event event;
  event.kind = EventKind::call;
  event.operation = kStepRoutine;
  event.begin_ns = begin_ns;
  event.end_ns = end_ns;
  trace->on_event(event);
}

}  // namespace sinew
