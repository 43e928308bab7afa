// From a DType at run time to a C++ type at compile time.
#pragma once

#include <cstdint>
#include <utility>

#include <sinew/types.hpp>

namespace sinew {

/// Calls `visit.template operator()<T>()` with the storage type of `dtype`.
template <class Visitor>
decltype(auto) with_element(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::f32:
      return visit.template operator()<float>();
    case DType::f64:
      return visit.template operator()<double>();
    case DType::f16:
      return visit.template operator()<f16>();
    case DType::bf16:
      return visit.template operator()<bf16>();
    case DType::i8:
      return visit.template operator()<std::int8_t>();
    case DType::u8:
      return visit.template operator()<std::uint8_t>();
    case DType::i32:
      return visit.template operator()<std::int32_t>();
    case DType::i64:
      return visit.template operator()<std::int64_t>();
    case DType::u64:
      break;
  }
  return visit.template operator()<std::uint64_t>();
}

}  // namespace sinew
