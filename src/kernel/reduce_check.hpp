// The one place where a pair of type and operation is refused.
#pragma once

#include <fmt/format.h>

#include <sinew/error.hpp>
#include <sinew/types.hpp>

namespace sinew {

inline void require_supported(DType dtype, ReduceOp op) {
  if (supports(dtype, op)) return;
  throw Error(Errc::unsupported,
              fmt::format("operation '{}' is not defined for type '{}': bitwise operations exist "
                          "on integers only",
                          name(op), name(dtype)));
}

}  // namespace sinew
