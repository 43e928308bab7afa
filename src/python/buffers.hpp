// NumPy arrays, and whatever else has Python's buffer protocol, as typed memory.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

#include <sinew/types.hpp>

namespace sinew::python {

/// Memory that Python owns, held as long as this lives.
class Buffer {
 public:
  enum class Use { reads, writes };
  /// `dtype`: for what the protocol has no letter for (bf16); "": as the buffer says. Throws
  /// Error{invalid_argument} where it has gaps, another byte order, an unknown type, or is not to
  /// be written to.
  Buffer(const pybind11::buffer& object, Use use, const std::string& dtype = "");

  [[nodiscard]] void* data() const noexcept { return info_.ptr; }
  [[nodiscard]] std::size_t elements() const noexcept {
    return static_cast<std::size_t>(info_.size);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return elements() * size_of(dtype_); }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] std::span<const std::byte> read() const noexcept {
    return {static_cast<const std::byte*>(info_.ptr), bytes()};
  }
  [[nodiscard]] std::span<std::byte> write() const noexcept {
    return {static_cast<std::byte*>(info_.ptr), bytes()};
  }

 private:
  pybind11::buffer_info info_;
  DType dtype_{};
};

}  // namespace sinew::python
