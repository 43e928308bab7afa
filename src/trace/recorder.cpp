#include "trace/recorder.hpp"

#include <atomic>

namespace sinew::trace {
namespace {

std::uint64_t next_recorder() noexcept {
  static std::atomic<std::uint64_t> count{0};
  return ++count;
}

}  // namespace

Key key_of(const Event& event) noexcept {
  Key key;
  key.kind = static_cast<std::uint8_t>(event.kind);
  key.dtype = event.dtype;
  key.operation = event.operation;
  key.communicator = event.communicator;
  key.bytes = event.bytes;
  key.peer = event.peer;
  key.round = event.round;
  key.tag = event.tag;
  key.algorithm = event.algorithm;
  key.channel = static_cast<std::uint8_t>(event.channel);
  if (event.kind == EventKind::send) key.sent = event.bytes;
  if (event.kind == EventKind::recv) key.received = event.bytes;
  return key;
}

Recorder::Recorder(const WriterOptions& options) : writer_(options), id_(next_recorder()) {}

Recorder::~Recorder() = default;

// The thread's own log, found without a lock from its second event on.
ThreadLog& Recorder::log() noexcept {
  struct Mine {
    std::uint64_t recorder = 0;
    ThreadLog* log = nullptr;
  };
  static thread_local Mine mine;
  if (mine.log != nullptr && mine.recorder == id_) return *mine.log;
  const std::lock_guard lock(adding_);
  auto& entry = logs_[std::this_thread::get_id()];
  if (entry == nullptr) entry = std::make_unique<ThreadLog>(writer_);
  mine = {id_, entry.get()};
  return *mine.log;
}

void Recorder::add(const Event& event, const Extra& extra) noexcept {
  auto& mine = log();
  auto key = key_of(event);
  key.label = extra.label;
  key.region = extra.region;
  const auto [slot, exact] = mine.find(key);
  if (!exact) {
    slot->more_sent += key.sent;
    slot->more_received += key.received;
  }
  slot->more_sent += extra.sent;
  mine.add(*slot, event.begin_ns, event.end_ns - event.begin_ns, event.waiting_ns, event.sequence);
}

}  // namespace sinew::trace
