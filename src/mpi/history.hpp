// The operations a rank was in lately, and where two ranks' differ.
#pragma once

#include <optional>
#include <span>

#include "mpi/wire.hpp"

namespace sinew::mpi {

/// Two ranks' operations of the same number.
struct Difference {
  WireOp mine, theirs;
  /// Whether the operations themselves differ. If not, earlier ones did, and are forgotten.
  [[nodiscard]] bool is_named() const noexcept { return from_wire(mine) != from_wire(theirs); }
};

class History {
 public:
  void add(const WireOp& op) noexcept {
    ops_[op.sequence % kHistory] = op;
    last_ = op;
  }
  [[nodiscard]] const WireOp& last() const noexcept { return last_; }
  [[nodiscard]] std::span<const WireOp, kHistory> ops() const noexcept { return ops_; }

  /// The earliest operation that both remember and do not agree on. A fingerprint covers all
  /// operations before it, so one is enough to know.
  [[nodiscard]] std::optional<Difference> compare(std::span<const WireOp> theirs) const noexcept {
    std::optional<Difference> first;
    for (const auto& other : theirs) {
      const auto& mine = ops_[other.sequence % kHistory];
      const bool same_number = other.sequence != 0 && mine.sequence == other.sequence;
      if (!same_number || mine.fingerprint == other.fingerprint) continue;
      if (!first || other.sequence < first->mine.sequence) first = {mine, other};
    }
    return first;
  }

 private:
  WireOp ops_[kHistory] = {};
  WireOp last_;
};

}  // namespace sinew::mpi
