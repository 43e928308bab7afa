// A compressed allreduce as the collectives it consists of: what the schemes of the compress layer
// do in one step, phase by phase, with the bytes each phase moves.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <sinew/types.hpp>

namespace sinew {

struct Phase {
  std::string_view what;  // "split"
  Collective collective{};
  double bytes = 0;            // of the larger user buffer
  double imbalance = 1;        // largest part over the mean, of an alltoall or an allgather
  bool private_sizes = false;  // a rank knows the sizes of its own parts only
};

/// A gradient and how it is thinned out.
struct Sparsity {
  double elements = 0;
  double element_bytes = 4;
  double density = 0.01;
  double item_bytes = 8;  // an index and a value
  double fill = 0;        // distinct items of all ranks over k; 0: as if ranks chose independently
  double imbalance = 1;
  [[nodiscard]] double items() const;  // k of one rank
};

/// Schemes that `phases_of` knows, the dense one first.
std::span<const std::string_view> modelled_schemes();
bool is_sparse(std::string_view scheme);

/// Throws Error{invalid_argument} for a scheme that is not modelled.
std::vector<Phase> phases_of(std::string_view scheme, int ranks, const Sparsity& gradient);

/// The formulas of the literature, for k items of two words from each of P ranks: seconds between
/// which a step lies on a link of `alpha_s` and `byte_s`. Zero where there is no formula.
struct ClosedForm {
  double low_s = 0, high_s = 0;
};
ClosedForm closed_form(std::string_view scheme, double ranks, const Sparsity& gradient,
                       double alpha_s, double byte_s);

}  // namespace sinew
