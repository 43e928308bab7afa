#include <sinew/types.hpp>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

constexpr std::array<std::string_view, kDTypes.size()> kDTypeNames{
    "f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64", "u64"};
constexpr std::array<std::size_t, kDTypes.size()> kDTypeBytes{4, 8, 2, 2, 1, 1, 4, 8, 8};
constexpr std::array<std::string_view, kReduceOps.size()> kReduceOpNames{
    "sum", "prod", "min", "max", "avg", "band", "bor", "bxor"};
constexpr std::array<std::string_view, kCollectives.size()> kCollectiveNames{
    "allreduce", "reduce",  "broadcast", "allgather", "reduce_scatter",
    "alltoall",  "scatter", "gather",    "barrier"};
constexpr std::array<std::string_view, 10> kErrcNames{
    "invalid argument", "unsupported",   "not verified", "mismatch", "peer lost",
    "timeout",          "out of memory", "system",       "expelled", "minority"};

template <class E, std::size_t N>
E parse(std::string_view kind, std::string_view text,
        const std::array<std::string_view, N>& names) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == text) return static_cast<E>(i);
  throw Error(Errc::invalid_argument, unknown(kind, text, names));
}

}  // namespace

std::string_view name(Errc code) noexcept { return kErrcNames[static_cast<std::size_t>(code)]; }
std::string_view name(DType dtype) noexcept { return kDTypeNames[static_cast<std::size_t>(dtype)]; }
std::string_view name(ReduceOp op) noexcept { return kReduceOpNames[static_cast<std::size_t>(op)]; }
std::string_view name(Collective collective) noexcept {
  return kCollectiveNames[static_cast<std::size_t>(collective)];
}

DType parse_dtype(std::string_view text) {
  // The names of nccl-tests, so that its users' scripts work unchanged.
  if (text == "float") return DType::f32;
  if (text == "double") return DType::f64;
  if (text == "half") return DType::f16;
  if (text == "bfloat16") return DType::bf16;
  if (text == "int8") return DType::i8;
  if (text == "uint8") return DType::u8;
  if (text == "int32") return DType::i32;
  if (text == "int64") return DType::i64;
  if (text == "uint64") return DType::u64;
  return parse<DType>("type", text, kDTypeNames);
}
ReduceOp parse_reduce_op(std::string_view text) {
  return parse<ReduceOp>("reduction", text, kReduceOpNames);
}
Collective parse_collective(std::string_view text) {
  return parse<Collective>("collective", text, kCollectiveNames);
}

std::size_t size_of(DType dtype) noexcept { return kDTypeBytes[static_cast<std::size_t>(dtype)]; }

bool is_float(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

bool supports(DType dtype, ReduceOp op) noexcept {
  const bool bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  return !(bitwise && is_float(dtype));
}

bool reduces(Collective collective) noexcept {
  return collective == Collective::allreduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

bool has_root(Collective collective) noexcept {
  return collective == Collective::reduce || collective == Collective::broadcast ||
         collective == Collective::scatter || collective == Collective::gather;
}

}  // namespace sinew
