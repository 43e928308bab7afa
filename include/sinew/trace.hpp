// What happened, as plain numbers: the record that executors, profilers and trainers all write.
#pragma once

#include <cstdint>

namespace sinew {

enum class EventKind : std::uint8_t { collective, step, send, recv, call };

struct Event {
  EventKind kind{};
  std::uint8_t dtype = 0;       // DType
  std::uint16_t operation = 0;  // Collective, Op for a step, number of the routine for a call
  std::uint16_t channel = 0;
  std::uint32_t communicator = 0;  // number of the communicator in its process
  std::uint32_t sequence = 0;      // of the collective on its communicator
  std::uint32_t round = 0;         // of a step
  std::int32_t peer = -1;
  std::uint64_t bytes = 0;
  std::uint64_t algorithm = 0;  // hash of its name
  std::uint64_t tag = 0;        // the caller's
  std::uint64_t begin_ns = 0;   // steady clock
  std::uint64_t end_ns = 0;
  std::uint64_t waiting_ns = 0;  // of which nothing could be done
};

class Observer {
 public:
  virtual ~Observer() = default;
  /// Called in the thread that runs the collective. Must not block or throw.
  virtual void on_event(const Event& event) noexcept = 0;
};

}  // namespace sinew
