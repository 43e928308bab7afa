#include "python/buffers.hpp"

#include <fmt/format.h>

#include <sinew/error.hpp>

namespace sinew::python {
namespace {

DType dtype_of(const pybind11::buffer_info& info) {
  auto format = info.format;
  if (!format.empty() && (format[0] == '<' || format[0] == '=' || format[0] == '@'))
    format.erase(0, 1);
  const auto bytes = info.itemsize;
  if (format == "f") return DType::f32;
  if (format == "d") return DType::f64;
  if (format == "e") return DType::f16;
  if (format == "b") return DType::i8;
  if (format == "B" || format == "c" || format == "?") return DType::u8;
  if ((format == "i" || format == "l" || format == "q") && bytes == 4) return DType::i32;
  if ((format == "i" || format == "l" || format == "q") && bytes == 8) return DType::i64;
  if ((format == "L" || format == "Q") && bytes == 8) return DType::u64;
  throw Error(Errc::invalid_argument,
              fmt::format("elements of format '{}' ({} bytes) are of no type that sinew knows; it "
                          "knows float16 to float64, int8, uint8, int32, int64 and uint64, and "
                          "bfloat16 as uint16 with dtype=\"bf16\"",
                          info.format, bytes));
}

bool is_dense(const pybind11::buffer_info& info) {
  auto stride = info.itemsize;
  for (auto axis = info.ndim; axis-- > 0;) {
    const auto at = static_cast<std::size_t>(axis);
    if (info.shape[at] > 1 && info.strides[at] != stride) return false;
    stride *= info.shape[at];
  }
  return true;
}

}  // namespace

Buffer::Buffer(const pybind11::buffer& object, Use use, const std::string& dtype)
    : info_(object.request(/*writable=*/false)) {
  if (use == Use::writes && info_.readonly)
    throw Error(Errc::invalid_argument, "a buffer that is to be written to is read-only");
  if (!is_dense(info_))
    throw Error(Errc::invalid_argument,
                "an array with gaps or in another order than C's: give numpy.ascontiguousarray(a), "
                "and copy back what comes");
  if (dtype.empty()) {
    dtype_ = dtype_of(info_);
    return;
  }
  dtype_ = parse_dtype(dtype);
  if (static_cast<std::size_t>(info_.itemsize) != size_of(dtype_))
    throw Error(Errc::invalid_argument,
                fmt::format("elements of {} bytes are not {}", info_.itemsize, dtype));
}

}  // namespace sinew::python
