// The programs of many ranks. Most ranks do the same with other peers: such a program is kept once,
// so that a million ranks take no more room than their state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "model/program.hpp"
#include "model/symmetry.hpp"

namespace sinew {

class ProgramPool {
 public:
  /// `symmetry` says how distances are taken: with another than the schedules have, more programs
  /// differ, and that is all.
  ProgramPool(int size, Symmetry symmetry) noexcept
      : size_(size), by_xor_(symmetry == Symmetry::flip) {}

  /// The same program with peers as distances from `rank`; lives as long as the pool.
  const Program& keep(Program program, std::int32_t rank);
  /// Whom an item of a kept program means when `rank` executes it.
  [[nodiscard]] std::int32_t peer(const Item& item, std::int32_t rank) const noexcept {
    if (item.peer < 0) return item.peer;  // a group
    if (by_xor_) return item.peer ^ rank;
    const auto room = size_ - rank;
    return item.peer < room ? item.peer + rank : item.peer - room;
  }
  /// Programs that differ.
  [[nodiscard]] std::size_t count() const noexcept { return programs_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const Program& program) const noexcept;
  };

  std::int32_t size_;
  bool by_xor_;
  std::unordered_set<Program, Hash> programs_;
};

}  // namespace sinew
