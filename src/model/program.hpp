// A rank's schedule as the simulator keeps it: twelve bytes a step, so that tens of thousands of
// ranks fit in a cache rather than in all of memory.
#pragma once

#include <cstdint>
#include <vector>

#include <sinew/schedule.hpp>

namespace sinew {

struct Item {
  std::uint32_t round : 24;
  std::uint32_t channel : 4;
  std::uint32_t op : 4;
  std::int32_t peer;     // the other rank; below 0: a group, -1 for everyone, -2 for the first one
  std::uint32_t chunks;  // moved or combined

  [[nodiscard]] Op kind() const noexcept { return static_cast<Op>(op); }
  [[nodiscard]] bool sends() const noexcept { return kind() == Op::send; }
  [[nodiscard]] bool receives() const noexcept {
    return kind() == Op::recv || kind() == Op::recv_reduce;
  }
  friend bool operator==(const Item&, const Item&) = default;
};

struct Program {
  std::vector<Item> items;  // by round, then channel; within those as `compile` says
  std::vector<std::vector<int>> groups;
  std::uint32_t channels = 1;
  std::uint32_t rounds = 0;
  std::uint32_t message_chunks = 0;  // of the larger user buffer
  std::uint32_t board_chunks = 0;
  bool board_ops = false;     // publishes or gathers
  bool by_reference = false;  // what is gathered is read out of its owner's memory
  friend bool operator==(const Program&, const Program&) = default;
};

/// Ports serve the messages of a round one after another, nearest first: a rank's k-th send goes to
/// the rank k above it, its k-th receive comes from the rank k below. Every message therefore has
/// the same place on both of its ports, and no two ports can wait for each other.
///
/// With `in_place`, copies from the input to the output are left out: they are the same memory.
/// Throws Error{unsupported} for schedules with more rounds or channels than an item can hold.
Program compile(const Schedule& schedule, bool in_place);

}  // namespace sinew
