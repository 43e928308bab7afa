// Element types, reduction operations and collectives, with their names.
#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sinew {

enum class DType : std::uint8_t { f32, f64, f16, bf16, i8, u8, i32, i64, u64 };
enum class ReduceOp : std::uint8_t { sum, prod, min, max, avg, band, bor, bxor };
enum class Collective : std::uint8_t {
  allreduce,
  reduce,
  broadcast,
  allgather,
  reduce_scatter,
  alltoall,
  scatter,
  gather,
  barrier,
};

inline constexpr std::array kDTypes{DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                                    DType::u8,  DType::i32, DType::i64, DType::u64};
inline constexpr std::array kReduceOps{ReduceOp::sum, ReduceOp::prod, ReduceOp::min,
                                       ReduceOp::max, ReduceOp::avg,  ReduceOp::band,
                                       ReduceOp::bor, ReduceOp::bxor};
inline constexpr std::array kCollectives{
    Collective::allreduce, Collective::reduce,         Collective::broadcast,
    Collective::allgather, Collective::reduce_scatter, Collective::alltoall,
    Collective::scatter,   Collective::gather,         Collective::barrier};

std::string_view name(DType dtype) noexcept;
std::string_view name(ReduceOp op) noexcept;
std::string_view name(Collective collective) noexcept;

/// By name; an unknown one throws Error{invalid_argument} that suggests the nearest.
DType parse_dtype(std::string_view text);
ReduceOp parse_reduce_op(std::string_view text);
Collective parse_collective(std::string_view text);

std::size_t size_of(DType dtype) noexcept;
bool is_float(DType dtype) noexcept;
/// Bitwise operations exist on integers only.
bool supports(DType dtype, ReduceOp op) noexcept;
/// Whether the collective combines values (and so needs a ReduceOp).
bool reduces(Collective collective) noexcept;
/// Whether one rank plays a special part.
bool has_root(Collective collective) noexcept;

/// Storage of the two 16-bit floating-point formats. Arithmetic happens in f32.
struct f16 {
  std::uint16_t bits = 0;
  friend bool operator==(f16, f16) = default;
};
struct bf16 {
  std::uint16_t bits = 0;
  friend bool operator==(bf16, bf16) = default;
};

float to_float(f16 value) noexcept;
float to_float(bf16 value) noexcept;
/// Round to nearest, ties to even; NaN stays NaN.
f16 to_f16(float value) noexcept;
bf16 to_bf16(float value) noexcept;

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<f16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::u64;
};

template <class T>
concept Element = requires {
  DTypeOf<T>::value;
};

}  // namespace sinew
