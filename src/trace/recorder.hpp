// The observer that writes events to a trace file. Threads are told apart, none waits for another.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <sinew/trace.hpp>
#include "trace/thread_log.hpp"

namespace sinew::trace {

class Recorder final : public Observer {
 public:
  /// Throws Error{system} when the file cannot be made.
  explicit Recorder(const WriterOptions& options);
  ~Recorder() override;
  void on_event(const Event& event) noexcept override { add(event, {}); }

  /// What whoever passes an event on knows besides.
  struct Extra {
    std::uint8_t label = 0;    // what it is for, from 1: a note of the trace; 0: none
    std::uint16_t region = 0;  // in which part of the program, in the same way
    std::uint64_t sent = 0;    // bytes that a call sent; differs from call to call
  };
  void add(const Event& event, const Extra& extra) noexcept;
  Writer& writer() noexcept { return writer_; }

 private:
  ThreadLog& log() noexcept;
  Writer writer_;
  std::uint64_t id_;  // of this recorder in the process
  std::mutex adding_;
  std::map<std::thread::id, std::unique_ptr<ThreadLog>> logs_;
};

Key key_of(const Event& event) noexcept;

}  // namespace sinew::trace
