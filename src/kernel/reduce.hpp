// Reduction loops for every type and operation: SIMD chosen at run time, and a scalar reference.
#pragma once

#include <cstddef>
#include <span>

#include <sinew/types.hpp>

namespace sinew {

/// The loops for one (type, operation). All are element-wise; a destination may be exactly one of
/// the inputs but may not overlap one partly. `avg` combines as `sum`; see divide().
struct Reducer {
  DType dtype{};
  ReduceOp op{};
  std::size_t element_bytes = 0;
  /// dst = dst op src
  void (*pair)(std::byte* dst, const std::byte* src, std::size_t elements) = nullptr;
  /// Every dst = ((inputs[0] op inputs[1]) op inputs[2]) ..., in one pass over the inputs. 16-bit
  /// floats round after every operation, so that the bits equal those of repeated pair().
  /// The last `streamed` destinations will not be read soon (non-temporal stores). That pays only
  /// where they are no inputs: those are in the cache, and would first be pushed out of it.
  void (*fold)(std::span<std::byte* const> dsts, std::span<const std::byte* const> inputs,
               std::size_t elements, std::size_t streamed) = nullptr;
};

/// Throws Error{unsupported} naming both when the type does not have the operation.
Reducer find_reducer(DType dtype, ReduceOp op);
/// The same loops, plain C++, one element at a time: what the SIMD ones are tested against.
Reducer find_scalar_reducer(DType dtype, ReduceOp op);

/// data[i] = data[i] / divisor: the last step of `avg`. Integers truncate towards zero.
void divide(DType dtype, std::byte* data, std::size_t elements, int divisor);

}  // namespace sinew
