// The reference: every operation on one element, plainly, and loops that apply it. Also what a
// processor runs that has none of the instruction sets in simd_targets.hpp.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernel/element.hpp"
#include "kernel/reduce.hpp"
#include "kernel/reduce_check.hpp"

namespace sinew {
namespace {

/// Integers wrap: the arithmetic is done without sign, where that is defined.
template <class T>
auto to_wrapping(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(value);
  } else {
    return value;
  }
}

/// NaN if either is, always the same NaN, and -0 < +0: the order of a and b never shows.
template <class T>
T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}

template <class T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a < b ? b : a;
}

template <ReduceOp kOp, class T>
T combine(T a, T b) {
  if constexpr (std::is_same_v<T, f16>) {
    return to_f16(combine<kOp>(to_float(a), to_float(b)));
  } else if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(combine<kOp>(to_float(a), to_float(b)));
  } else if constexpr (kOp == ReduceOp::sum || kOp == ReduceOp::avg) {
    return static_cast<T>(to_wrapping(a) + to_wrapping(b));
  } else if constexpr (kOp == ReduceOp::prod) {
    return static_cast<T>(to_wrapping(a) * to_wrapping(b));
  } else if constexpr (kOp == ReduceOp::min) {
    return smaller(a, b);
  } else if constexpr (kOp == ReduceOp::max) {
    return larger(a, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    return a;  // bitwise on floats: find_scalar_reducer() refuses before this is reached
  } else if constexpr (kOp == ReduceOp::band) {
    return static_cast<T>(a & b);
  } else if constexpr (kOp == ReduceOp::bor) {
    return static_cast<T>(a | b);
  } else {
    return static_cast<T>(a ^ b);
  }
}

template <class T>
T load(const std::byte* from, std::size_t element) {
  T value;
  std::memcpy(&value, from + element * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* to, std::size_t element, T value) {
  std::memcpy(to + element * sizeof(T), &value, sizeof(T));
}

template <ReduceOp kOp, class T>
void pair(std::byte* dst, const std::byte* src, std::size_t elements) {
  for (std::size_t i = 0; i < elements; ++i) {
    store(dst, i, combine<kOp>(load<T>(dst, i), load<T>(src, i)));
  }
}

template <ReduceOp kOp, class T>
void fold(std::span<std::byte* const> dsts, std::span<const std::byte* const> inputs,
          std::size_t elements, std::size_t /*streamed*/) {
  for (std::size_t i = 0; i < elements; ++i) {
    T total = load<T>(inputs[0], i);
    for (const std::byte* input : inputs.subspan(1)) total = combine<kOp>(total, load<T>(input, i));
    for (std::byte* dst : dsts) store(dst, i, total);
  }
}

template <ReduceOp kOp>
Reducer reducer_of(DType dtype) {
  return with_element(dtype, [dtype]<class T>() {
    return Reducer{dtype, kOp, sizeof(T), pair<kOp, T>, fold<kOp, T>};
  });
}

}  // namespace

Reducer find_scalar_reducer(DType dtype, ReduceOp op) {
  require_supported(dtype, op);
  switch (op) {
    case ReduceOp::sum:
      return reducer_of<ReduceOp::sum>(dtype);
    case ReduceOp::prod:
      return reducer_of<ReduceOp::prod>(dtype);
    case ReduceOp::min:
      return reducer_of<ReduceOp::min>(dtype);
    case ReduceOp::max:
      return reducer_of<ReduceOp::max>(dtype);
    case ReduceOp::avg:
      return reducer_of<ReduceOp::avg>(dtype);
    case ReduceOp::band:
      return reducer_of<ReduceOp::band>(dtype);
    case ReduceOp::bor:
      return reducer_of<ReduceOp::bor>(dtype);
    case ReduceOp::bxor:
      break;
  }
  return reducer_of<ReduceOp::bxor>(dtype);
}

}  // namespace sinew
