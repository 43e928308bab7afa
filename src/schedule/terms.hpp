// Symbolic values of the verifier. Equal values have equal ids (hash-consing), and combining is
// commutative but not associative, so equal ids mean equal bits for any commutative operation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sinew {

using TermId = std::uint32_t;
inline constexpr TermId kUndefined = 0;

class Terms {
 public:
  /// Leaves are (rank, input chunk).
  Terms(int ranks, std::uint32_t chunks);

  [[nodiscard]] TermId leaf(int rank, std::uint32_t chunk) const noexcept;
  TermId combine(TermId a, TermId b);

  /// How often each leaf occurs in a term.
  [[nodiscard]] std::map<TermId, std::uint64_t> leaves(TermId term) const;
  /// Whose input, and which chunk of it.
  [[nodiscard]] std::pair<int, std::uint32_t> origin(TermId leaf) const noexcept {
    return {static_cast<int>((leaf - 1) / chunks_), (leaf - 1) % chunks_};
  }
  /// "rank 2's chunk 5".
  [[nodiscard]] std::string leaf_name(TermId leaf) const;

 private:
  struct Pair {
    TermId a, b;
  };
  std::uint32_t chunks_;
  TermId first_pair_;
  std::vector<Pair> pairs_;
  std::unordered_map<std::uint64_t, TermId> ids_;
};

}  // namespace sinew
