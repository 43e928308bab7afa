// The operations on vectors, and the one loop that applies them. Compiled once for every
// instruction set (see lanes-inl.hpp).
#if defined(SINEW_KERNEL_FOLD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SINEW_KERNEL_FOLD_INL_HPP
#undef SINEW_KERNEL_FOLD_INL_HPP
#else
#define SINEW_KERNEL_FOLD_INL_HPP
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <array>
#include <limits>
#include <span>
#include <type_traits>

#include "kernel/copy.hpp"
#include "kernel/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

// kChoosesOne: the result is one of the operands (or a NaN any format can hold), so that 16-bit
// floats need no rounding. No operation multiplies and adds, so nothing can be fused.
// kHot: what training asks for; gets loops of its own for the usual numbers of inputs (2 has one
// for every operation).

struct Sum {
  static constexpr bool kChoosesOne = false, kHot = true;
  template <class D, class V>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::Add(a, b);
  }
};

struct Prod {
  static constexpr bool kChoosesOne = false, kHot = false;
  template <class D, class V>
  static HWY_INLINE V apply(D d, V a, V b) {
    if constexpr (sizeof(hn::TFromD<D>) > 1) {
      return hn::Mul(a, b);
    } else {  // no 8-bit multiplication anywhere: two of 16 bits, each keeping its low byte
      const hn::Repartition<std::uint16_t, D> d16;
      const auto a16 = hn::BitCast(d16, a), b16 = hn::BitCast(d16, b);
      const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, std::uint16_t{0xFF}));
      const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
      return hn::BitCast(d, hn::Or(even, odd));
    }
  }
};

/// `one` and `other` are min or max of (a, b) and of (b, a). On x86 these return their second
/// operand where a and b are zeros or one is NaN: together they hold both.
template <class D, class V>
HWY_INLINE V canonical_nan(D d, V one, V other, V otherwise) {
  const V nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
  return hn::IfThenElse(hn::IsNaN(hn::Or(one, other)), nan, otherwise);
}

struct Min {
  static constexpr bool kChoosesOne = true, kHot = false;
  template <class D, class V>
  static HWY_INLINE V apply(D d, V a, V b) {
    const V one = hn::Min(a, b);
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      const V other = hn::Min(b, a);
      return canonical_nan(d, one, other, hn::Or(one, other));  // -0 if either is
    } else {
      return one;
    }
  }
};

struct Max {
  static constexpr bool kChoosesOne = true, kHot = false;
  template <class D, class V>
  static HWY_INLINE V apply(D d, V a, V b) {
    const V one = hn::Max(a, b);
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
      const V other = hn::Max(b, a);
      return canonical_nan(d, one, other, hn::And(one, other));  // +0 if either is
    } else {
      return one;
    }
  }
};

struct BitAnd {
  static constexpr bool kChoosesOne = true, kHot = false;
  template <class D, class V>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::And(a, b);
  }
};

struct BitOr {
  static constexpr bool kChoosesOne = true, kHot = false;
  template <class D, class V>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::Or(a, b);
  }
};

struct BitXor {
  static constexpr bool kChoosesOne = true, kHot = false;
  template <class D, class V>
  static HWY_INLINE V apply(D /*d*/, V a, V b) {
    return hn::Xor(a, b);
  }
};

using Dsts = std::span<std::byte* const>;

/// The inputs of a fold. A fixed number of them is copied out of the caller's array: stores of
/// bytes may alias that array, and the compiler would load every pointer again in each round.
template <std::size_t kCount>
struct Inputs {
  std::array<const std::byte*, kCount> from;
  explicit HWY_INLINE Inputs(std::span<const std::byte* const> inputs) {
    for (std::size_t i = 0; i < kCount; ++i) from[i] = inputs[i];
  }
  [[nodiscard]] HWY_INLINE std::size_t count() const { return kCount; }
};

template <>
struct Inputs<0> {  // any number
  std::span<const std::byte* const> from;
  explicit HWY_INLINE Inputs(std::span<const std::byte* const> inputs) : from(inputs) {}
  [[nodiscard]] HWY_INLINE std::size_t count() const { return from.size(); }
};

/// kVectors neighbouring vectors, combined over all inputs in registers.
template <class L, std::size_t kVectors>
struct Block {
  typename L::V v[kVectors];

  template <class Op, class In>
  static HWY_INLINE Block fold(const In& inputs, std::size_t at) {
    Block total;
    for (std::size_t k = 0; k < kVectors; ++k) {
      total.v[k] = L::load(inputs.from[0] + at + k * L::kBytes);
    }
    HWY_UNROLL(8)
    for (std::size_t i = 1; i < inputs.count(); ++i) {
      const std::byte* from = inputs.from[i] + at;
      for (std::size_t k = 0; k < kVectors; ++k) {
        total.v[k] = L::template combine<Op>(total.v[k], L::load(from + k * L::kBytes));
      }
    }
    return total;
  }
  HWY_INLINE void store(Dsts dsts, std::size_t at) const {
    for (std::byte* dst : dsts) {
      for (std::size_t k = 0; k < kVectors; ++k) L::store(v[k], dst + at + k * L::kBytes);
    }
  }
  HWY_INLINE void stream(Dsts dsts, std::size_t at) const {
    for (std::byte* dst : dsts) {
      for (std::size_t k = 0; k < kVectors; ++k) L::stream(v[k], dst + at + k * L::kBytes);
    }
  }
};

/// As many bytes as a smaller vector has. Stored in one piece, so that whoever reads them next gets
/// them from the store buffer; out of a masked store he would have to wait. Moved as integers: the
/// instruction's C form of half a vector of floats is one aligned double.
template <class T, class Op, std::size_t kBytes, class In>
HWY_INLINE void fold_one_vector(Dsts dsts, const In& inputs) {
  const hn::CappedTag<T, kBytes / sizeof(T)> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  using Bits = hn::TFromD<decltype(bits)>;
  const auto load = [=](const std::byte* from) HWY_ATTR {
    return hn::BitCast(d, hn::LoadU(bits, reinterpret_cast<const Bits*>(from)));
  };
  auto total = load(inputs.from[0]);
  for (std::size_t i = 1; i < inputs.count(); ++i)
    total = Op::apply(d, total, load(inputs.from[i]));
  for (std::byte* dst : dsts)
    hn::StoreU(hn::BitCast(bits, total), bits, reinterpret_cast<Bits*>(dst));
}

template <class L, class Op, class In>
HWY_INLINE void fold_short(Dsts dsts, const In& inputs, std::size_t elements) {
  if (elements == 0) return;
  auto total = L::load_first(inputs.from[0], elements);
  for (std::size_t i = 1; i < inputs.count(); ++i) {
    total = L::template combine<Op>(total, L::load_first(inputs.from[i], elements));
  }
  for (std::byte* dst : dsts) L::store_first(total, dst, elements);
}

/// The last vector ends at the last element and overlaps the one before it. It is computed first
/// and stored last, because a destination may be an input: what overlaps is written twice, with
/// equal bits, and never read in between.
template <class L, class Op, class In>
HWY_INLINE void fold_stored(Dsts dsts, const In& inputs, std::size_t bytes) {
  const std::size_t last_at = bytes - L::kBytes;
  const auto last = Block<L, 1>::template fold<Op>(inputs, last_at);
  std::size_t at = 0;
  for (; at + 4 * L::kBytes <= last_at; at += 4 * L::kBytes) {
    Block<L, 4>::template fold<Op>(inputs, at).store(dsts, at);
  }
  for (; at < last_at; at += L::kBytes) Block<L, 1>::template fold<Op>(inputs, at).store(dsts, at);
  last.store(dsts, last_at);
}

/// Bytes until all of `dsts` are aligned for non-temporal stores, or `bytes` if they never are.
template <class L>
HWY_INLINE std::size_t head_bytes(Dsts dsts, std::size_t bytes, std::size_t element_bytes) {
  const auto misalignment = [](const std::byte* p) {
    return reinterpret_cast<std::uintptr_t>(p) % L::kBytes;
  };
  const std::size_t first = misalignment(dsts[0]);
  for (const std::byte* dst : dsts) {
    if (misalignment(dst) != first) return bytes;
  }
  const std::size_t head = first == 0 ? 0 : L::kBytes - first;
  return head % element_bytes == 0 ? head : bytes;
}

/// As fold_stored(), with a first vector that is treated like the last one.
template <class L, class Op, class In>
HWY_NOINLINE void fold_streamed(Dsts dsts, std::size_t streamed, const In& inputs, std::size_t head,
                                std::size_t bytes) {
  const auto stored = dsts.first(dsts.size() - streamed), past_caches = dsts.last(streamed);
  const std::size_t last_at = bytes - L::kBytes;
  const auto first = Block<L, 1>::template fold<Op>(inputs, 0);
  const auto last = Block<L, 1>::template fold<Op>(inputs, last_at);
  std::size_t at = head;
  for (; at + 4 * L::kBytes <= last_at; at += 4 * L::kBytes) {
    const auto total = Block<L, 4>::template fold<Op>(inputs, at);
    total.store(stored, at);
    total.stream(past_caches, at);
  }
  for (; at < last_at; at += L::kBytes) Block<L, 1>::template fold<Op>(inputs, at).store(dsts, at);
  hwy::FlushStream();  // before whatever tells a reader that the data is there
  first.store(dsts, 0);
  last.store(dsts, last_at);
}

template <class T, class Op, class In>
HWY_INLINE void fold_any(Dsts dsts, const In& inputs, std::size_t elements) {
  using L = Lanes<T>;
  if (elements < L::kElements) {
    if constexpr (std::is_arithmetic_v<T> && L::kBytes > 16) {
      if (elements * sizeof(T) == 8) return fold_one_vector<T, Op, 8>(dsts, inputs);
      if (elements * sizeof(T) == 16) return fold_one_vector<T, Op, 16>(dsts, inputs);
    }
    fold_short<L, Op>(dsts, inputs, elements);
  } else {
    fold_stored<L, Op>(dsts, inputs, elements * sizeof(T));
  }
}

template <class T, class Op, std::size_t kInputs>
HWY_INLINE void fold_into_one(std::byte* dst, std::span<const std::byte* const> inputs,
                              std::size_t elements) {
  const std::array<std::byte*, 1> dsts{dst};  // a copy, for the reason Inputs gives
  fold_any<T, Op>(dsts, Inputs<kInputs>(inputs), elements);
}

template <class T, class Op>
void fold(Dsts dsts, std::span<const std::byte* const> inputs, std::size_t elements,
          std::size_t streamed) {
  const std::size_t bytes = elements * sizeof(T);
  if (inputs.size() == 1) {
    for (std::size_t i = 0; i < dsts.size(); ++i)
      copy_bytes(dsts[i], inputs[0], bytes, i + streamed >= dsts.size());
    return;
  }
  if (streamed > 0 && elements >= 8 * Lanes<T>::kElements) {
    const std::size_t head = head_bytes<Lanes<T>>(dsts.last(streamed), bytes, sizeof(T));
    if (head < bytes)
      return fold_streamed<Lanes<T>, Op>(dsts, streamed, Inputs<0>(inputs), head, bytes);
  }
  if (dsts.size() == 1) {
    const std::size_t count = inputs.size();
    if (count == 2) return fold_into_one<T, Op, 2>(dsts[0], inputs, elements);
    if constexpr (Op::kHot) {
      if (count == 4) return fold_into_one<T, Op, 4>(dsts[0], inputs, elements);
      if (count == 8) return fold_into_one<T, Op, 8>(dsts[0], inputs, elements);
    }
  }
  fold_any<T, Op>(dsts, Inputs<0>(inputs), elements);
}

template <class T, class Op>
void pair(std::byte* dst, const std::byte* src, std::size_t elements) {
  const std::array<const std::byte*, 2> inputs{dst, src};
  fold_into_one<T, Op, 2>(dst, inputs, elements);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#endif
