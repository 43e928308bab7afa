// Chooses the reduction loops: by instruction set once, then by type and operation.
#include "kernel/reduce.hpp"

#include "kernel/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/reduce.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h: these are compiled for every target.
#include <hwy/highway.h>

#include "kernel/element.hpp"
#include "kernel/reduce_check.hpp"
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "kernel/fold-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

Reducer find_loops(DType dtype, ReduceOp op) { return find_scalar_reducer(dtype, op); }

#else

template <class T, class Op>
Reducer loops() {
  return {.pair = pair<T, Op>, .fold = fold<T, Op>};
}

template <class T>
struct Wrapping {
  using type = T;
};
template <class T>
requires std::is_integral_v<T>
struct Wrapping<T> {
  using type = std::make_unsigned_t<T>;
};

template <class T>
Reducer loops_of(ReduceOp op) {
  // Without order, signed integers are the bits of unsigned ones: half as many loops.
  using Wrapped = typename Wrapping<T>::type;
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::band) return loops<Wrapped, BitAnd>();
    if (op == ReduceOp::bor) return loops<Wrapped, BitOr>();
    if (op == ReduceOp::bxor) return loops<Wrapped, BitXor>();
  }
  if (op == ReduceOp::prod) return loops<Wrapped, Prod>();
  if (op == ReduceOp::min) return loops<T, Min>();
  if (op == ReduceOp::max) return loops<T, Max>();
  return loops<Wrapped, Sum>();  // sum, and avg before its division
}

Reducer find_loops(DType dtype, ReduceOp op) {
  return with_element(dtype, [op]<class T>() { return loops_of<T>(op); });
}

#endif

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinew {

HWY_EXPORT(find_loops);

Reducer find_reducer(DType dtype, ReduceOp op) {
  require_supported(dtype, op);
  Reducer reducer = HWY_DYNAMIC_DISPATCH(find_loops)(dtype, op);
  reducer.dtype = dtype;
  reducer.op = op;
  reducer.element_bytes = size_of(dtype);
  return reducer;
}

}  // namespace sinew
#endif
