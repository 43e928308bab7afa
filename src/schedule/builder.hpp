// What generators write schedules with: one call a step, rounds counted by next_round().
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <sinew/schedule.hpp>

namespace sinew {

inline Chunks in(std::uint32_t first, std::uint32_t count = 1) {
  return {Buf::input, first, count};
}
inline Chunks out(std::uint32_t first, std::uint32_t count = 1) {
  return {Buf::output, first, count};
}
inline Chunks scratch(std::uint32_t first, std::uint32_t count = 1) {
  return {Buf::scratch, first, count};
}
inline Chunks on_board(std::uint32_t first, std::uint32_t count = 1) {
  return {Buf::board, first, count};
}

class Builder {
 public:
  Builder(std::string_view name, int rank, int size, std::uint32_t input, std::uint32_t output) {
    schedule_.name = name;
    schedule_.rank = rank;
    schedule_.size = size;
    schedule_.chunks = {input, output, 0, 0};
  }

  /// Adds scratch chunks as large as `count` chunks of the larger user buffer from `like` on;
  /// returns the index of the first.
  std::uint32_t add_scratch(std::uint32_t like, std::uint32_t count) {
    auto& sizes = schedule_.scratch_like;
    const auto first = static_cast<std::uint32_t>(sizes.size());
    for (std::uint32_t i = 0; i < count; ++i) sizes.push_back(like + i);
    schedule_.chunks[2] = static_cast<std::uint32_t>(sizes.size());
    return first;
  }
  void board_chunks(std::uint32_t count) { schedule_.chunks[3] = count; }
  void groups(std::vector<std::vector<int>> groups) { schedule_.groups = std::move(groups); }

  /// Steps added from now on belong to this round (of this channel).
  void at(std::uint32_t round, std::uint16_t channel = 0) {
    round_ = round;
    channel_ = channel;
  }
  void next_round() { ++round_; }
  [[nodiscard]] std::uint32_t round() const { return round_; }

  void send(int peer, Chunks src) { add({.op = Op::send, .peer = peer, .src = src}); }
  void recv(int peer, Chunks dst) { add({.op = Op::recv, .peer = peer, .dst = dst}); }
  void recv_reduce(int peer, Chunks dst) { add({.op = Op::recv_reduce, .peer = peer, .dst = dst}); }
  void copy(Chunks src, Chunks dst) { add({.op = Op::copy, .src = src, .dst = dst}); }
  void reduce(Chunks src, Chunks dst) { add({.op = Op::reduce, .src = src, .dst = dst}); }

  /// With no chunks it only says that this rank has come this far.
  void publish(Chunks src, std::uint32_t board, int group = -1) {
    add({.op = Op::publish, .group = group, .src = src, .board = on_board(board, src.count)});
  }
  void gather_copy(int peer, std::uint32_t board, Chunks dst, int group = -1) {
    add({.op = Op::gather_copy,
         .peer = peer,
         .group = group,
         .dst = dst,
         .board = on_board(board, dst.count)});
  }
  void wait_for_all(int group = -1) {
    add({.op = Op::gather_copy, .group = group, .board = on_board(0, 0)});
  }
  void gather_reduce(Chunks mine, std::uint32_t board, Chunks dst, int group = -1) {
    add({.op = Op::gather_reduce,
         .group = group,
         .src = mine,
         .dst = dst,
         .board = on_board(board, mine.count)});
  }
  void gather_reduce_all(Chunks src, Chunks dst) {
    add({.op = Op::gather_reduce_all, .src = src, .dst = dst});
  }

  /// `rounds` must be the same on every rank.
  Schedule finish(std::uint32_t rounds);

 private:
  void add(Step step) {
    step.round = round_;
    step.channel = channel_;
    schedule_.steps.push_back(step);
  }

  Schedule schedule_;
  std::uint32_t round_ = 0;
  std::uint16_t channel_ = 0;
};

}  // namespace sinew
