// A vector of each element type: how it is loaded, stored and combined. Compiled once for every
// instruction set, so it has the toggled include guard that Highway prescribes.
#if defined(SINEW_KERNEL_LANES_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SINEW_KERNEL_LANES_INL_HPP
#undef SINEW_KERNEL_LANES_INL_HPP
#else
#define SINEW_KERNEL_LANES_INL_HPP
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <sinew/types.hpp>

HWY_BEFORE_NAMESPACE();
namespace sinew {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Whether loads and stores under a mask exist that never touch memory outside of it. Elsewhere
/// Highway reads the whole vector.
template <class T>
constexpr bool kHasMasks = HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(T) >= 4);

/// The first `count` lanes, fewer than the vector has; the others are zero.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_part(D d, const std::byte* from, std::size_t count) {
  if constexpr (kHasMasks<T>) {
    return hn::MaskedLoad(hn::FirstN(d, count), d, reinterpret_cast<const T*>(from));
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
    std::memcpy(lanes, from, count * sizeof(T));
    return hn::Load(d, lanes);
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_part(D d, hn::Vec<D> v, std::byte* to, std::size_t count) {
  if constexpr (kHasMasks<T>) {
    hn::BlendedStore(v, hn::FirstN(d, count), d, reinterpret_cast<T*>(to));
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(d)];
    hn::Store(v, d, lanes);
    std::memcpy(to, lanes, count * sizeof(T));
  }
}

/// The bits of f32 lanes rounded to their upper halves, nearest even. A NaN with a bit in its lower
/// half may become something else.
template <class D>
HWY_INLINE hn::Vec<D> round_to_upper_half(D du, hn::Vec<D> bits) {
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFU)));
  return hn::And(rounded, hn::Set(du, 0xFFFF'0000U));
}

/// Types the processor calculates with as they are.
template <class T>
struct Lanes {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr std::size_t kElements = hn::MaxLanes(D{});
  static constexpr std::size_t kBytes = kElements * sizeof(T);

  static HWY_INLINE V load(const std::byte* from) {
    return hn::LoadU(D{}, reinterpret_cast<const T*>(from));
  }
  static HWY_INLINE void store(V v, std::byte* to) { hn::StoreU(v, D{}, reinterpret_cast<T*>(to)); }
  static HWY_INLINE void stream(V v, std::byte* to) {
    hn::Stream(v, D{}, reinterpret_cast<T*>(to));
  }
  static HWY_INLINE V load_first(const std::byte* from, std::size_t count) {
    return load_part(D{}, from, count);
  }
  static HWY_INLINE void store_first(V v, std::byte* to, std::size_t count) {
    store_part(D{}, v, to, count);
  }
  template <class Op>
  static HWY_INLINE V combine(V a, V b) {
    return Op::apply(D{}, a, b);
  }
};

/// f16 lives in f32 lanes, rounded to f16 after every operation that can need it.
template <>
struct Lanes<f16> {
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using Half = hn::Rebind<hwy::float16_t, D>;
  using Bits = hn::Rebind<std::uint16_t, D>;
  static constexpr std::size_t kElements = hn::MaxLanes(D{});
  static constexpr std::size_t kBytes = kElements * sizeof(f16);

  static HWY_INLINE V widen(hn::Vec<Bits> bits) {
    return hn::PromoteTo(D{}, hn::BitCast(Half{}, bits));
  }
  static HWY_INLINE hn::Vec<Bits> narrow(V v) {
    return hn::BitCast(Bits{}, hn::DemoteTo(Half{}, v));
  }
  static HWY_INLINE V load(const std::byte* from) {
    return widen(hn::LoadU(Bits{}, reinterpret_cast<const std::uint16_t*>(from)));
  }
  static HWY_INLINE void store(V v, std::byte* to) {
    hn::StoreU(narrow(v), Bits{}, reinterpret_cast<std::uint16_t*>(to));
  }
  static HWY_INLINE void stream(V v, std::byte* to) {
    hn::Stream(narrow(v), Bits{}, reinterpret_cast<std::uint16_t*>(to));
  }
  static HWY_INLINE V load_first(const std::byte* from, std::size_t count) {
    return widen(load_part(Bits{}, from, count));
  }
  static HWY_INLINE void store_first(V v, std::byte* to, std::size_t count) {
    store_part(Bits{}, narrow(v), to, count);
  }
  template <class Op>
  static HWY_INLINE V combine(V a, V b) {
    const V v = Op::apply(D{}, a, b);
    if constexpr (Op::kChoosesOne) {
      return v;
    } else {
      return hn::PromoteTo(D{}, hn::DemoteTo(Half{}, v));
    }
  }
};

/// bf16 is the upper half of an f32. The even elements of a vector are shifted up and the odd ones
/// masked: the order of lanes does not matter element by element, so nothing is shuffled.
template <>
struct Lanes<bf16> {
  using D = hn::ScalableTag<float>;
  using Words = hn::RebindToUnsigned<D>;
  using Bits = hn::Repartition<std::uint16_t, D>;
  struct V {
    hn::Vec<D> even, odd;
  };
  static constexpr std::size_t kElements = hn::MaxLanes(Bits{});
  static constexpr std::size_t kBytes = kElements * sizeof(bf16);

  static HWY_INLINE V widen(hn::Vec<Bits> bits) {
    const auto words = hn::BitCast(Words{}, bits);
    return {hn::BitCast(D{}, hn::ShiftLeft<16>(words)),
            hn::BitCast(D{}, hn::And(words, hn::Set(Words{}, 0xFFFF'0000U)))};
  }
  static HWY_INLINE hn::Vec<Bits> narrow(V v) {  // v is already rounded
    return hn::BitCast(Bits{}, hn::Or(hn::ShiftRight<16>(hn::BitCast(Words{}, v.even)),
                                      hn::BitCast(Words{}, v.odd)));
  }
  static HWY_INLINE V load(const std::byte* from) {
    return widen(hn::LoadU(Bits{}, reinterpret_cast<const std::uint16_t*>(from)));
  }
  static HWY_INLINE void store(V v, std::byte* to) {
    hn::StoreU(narrow(v), Bits{}, reinterpret_cast<std::uint16_t*>(to));
  }
  static HWY_INLINE void stream(V v, std::byte* to) {
    hn::Stream(narrow(v), Bits{}, reinterpret_cast<std::uint16_t*>(to));
  }
  static HWY_INLINE V load_first(const std::byte* from, std::size_t count) {
    return widen(load_part(Bits{}, from, count));
  }
  static HWY_INLINE void store_first(V v, std::byte* to, std::size_t count) {
    store_part(Bits{}, narrow(v), to, count);
  }
  template <class Op>
  static HWY_INLINE hn::Vec<D> combine_words(hn::Vec<D> a, hn::Vec<D> b) {
    const auto v = Op::apply(D{}, a, b);
    if constexpr (Op::kChoosesOne) {
      return v;
    } else {
      // A NaN here comes from an operand or from the processor; neither has a bit in the lower
      // half, so it needs no care.
      return hn::BitCast(D{}, round_to_upper_half(Words{}, hn::BitCast(Words{}, v)));
    }
  }
  template <class Op>
  static HWY_INLINE V combine(V a, V b) {
    return {combine_words<Op>(a.even, b.even), combine_words<Op>(a.odd, b.odd)};
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace sinew
HWY_AFTER_NAMESPACE();

#endif
