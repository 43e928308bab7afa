// What a worker does, into its trace file: the parts of each step beside the collectives that were
// under way meanwhile, with the role of each and the phase of the training.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include <sinew/trace.hpp>
#include "trace/recorder.hpp"

namespace sinew {

/// Routines of the trace, by number; their names are in docs/format-trace.md.
enum class TrainPart : std::uint8_t {
  step = 1,  // all of one
  data,      // waiting for samples
  forward,
  backward,
  update,
  compress,  // between the collectives of a bucket
  bucket,    // one bucket, compressing and adding up; with bytes before and after compression
  wait,      // from the end of the backward pass to the last sum
  vote,      // whether all ranks have all sums
  save,
  evaluate,
};

enum class TrainPhase : std::uint8_t { none, dense, sparse };

/// Used by the thread that trains and by the one that communicates.
class TrainTrace final : public Observer {
 public:
  /// Throws Error{system} when the file cannot be made.
  TrainTrace(const std::string& path, int rank, int size, std::string_view command);

  /// Collectives, with label and region. Their steps are left out: they would be most of the file.
  void on_event(const Event& event) noexcept override;
  void add(TrainPart part, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t step,
           std::uint64_t bytes = 0, std::uint64_t sent = 0, std::uint64_t tag = 0) noexcept;

  /// A bucket begins, and ends. What is not a collective in between is compressing, where `phase`
  /// is sparse.
  void begin_bucket(std::uint64_t now_ns) noexcept;
  void end_bucket(std::uint64_t now_ns) noexcept;
  void enter(TrainPhase phase) noexcept { phase_ = phase; }
  /// What calls with this tag are for.
  void name_tag(std::uint64_t tag, std::string_view role);
  /// How many ranks there are from now on.
  void resize(int size) noexcept { size_ = size; }
  /// A line of information: `key=value`.
  void note(std::string_view key, std::string_view value);
  /// The run came to its end; nothing is written afterwards.
  void close();

 private:
  std::uint8_t label_of(std::uint64_t tag) noexcept;
  void record(const Event& event, std::uint64_t sent) noexcept;
  void compressed_until(std::uint64_t now_ns) noexcept;

  trace::Recorder recorder_;
  std::atomic<TrainPhase> phase_{TrainPhase::none};
  std::atomic<int> size_;
  std::mutex mutex_;
  std::uint32_t communicator_ = 0;              // the last that was explained
  std::map<std::uint64_t, std::uint8_t> tags_;  // and their labels
  std::set<std::uint8_t> named_;
  std::uint64_t compressing_since_ns_ = 0;  // 0: not now; of the thread that has the bucket
};

/// Nanoseconds on the clock of the trace.
std::uint64_t trace_now() noexcept;

}  // namespace sinew
