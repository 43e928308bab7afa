// What a library must offer to be measured: one rank's hand on one collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "measure/case.hpp"

namespace sinew::bench {

/// A rank's place in its group.
struct Seat {
  int rank = 0;
  int ranks = 1;
};

/// In place, and in a broadcast, both are the same memory.
struct Buffers {
  std::span<std::byte> input;
  std::span<std::byte> output;
};

class Contender {
 public:
  Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;
  virtual ~Contender() = default;

  /// Must answer alike on all ranks.
  virtual bool supports(const Case&) { return true; }
  /// At least `bytes`, 64-byte aligned. By default private pages of the process.
  virtual std::span<std::byte> alloc(std::size_t bytes);
  virtual void free(std::span<std::byte> memory) noexcept;

  /// Called by all ranks before the first run() of a case; the buffers live until finish().
  virtual void prepare(const Case& what, const Buffers& buffers) = 0;
  /// The timed part: the collective once, complete on return.
  virtual void run() = 0;
  virtual void finish() {}
  /// New input before each sample, not timed, where the case asks for it. By default plain stores
  /// of something that differs from line to line, as a caller's new data would be.
  virtual void rewrite(const Buffers& buffers);
  /// What there is to tell after a turn beyond its times; a few hundred characters.
  virtual std::string remark() { return {}; }

  /// Input for the check and the number of wrong output elements after one run(). Override both
  /// for element types other than f32 or reductions other than sum.
  virtual void fill(const Case& what, Seat seat, const Buffers& buffers);
  virtual std::uint64_t count_wrong(const Case& what, Seat seat, const Buffers& buffers);
};

}  // namespace sinew::bench
