// Tensors as bytes: a fixed binary form of named tensors and a little JSON, for files and messages.
// It is read where it lies, and nothing in it is ever executed. docs/format-tensor.md describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sinew/error.hpp>
#include <sinew/lossless.hpp>
#include <sinew/types.hpp>

namespace sinew {

/// Where a tensor was: its bytes are in this frame either way.
struct Device {
  enum class Kind : std::uint8_t { cpu, cuda, rocm, xpu, other };
  Kind kind = Kind::cpu;
  std::uint16_t index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

/// A tensor to be written: row-major, without gaps.
struct TensorView {
  std::string_view name;
  DType dtype{};
  std::span<const std::uint64_t> shape;  // none: a single number
  std::span<const std::byte> data;
  bool requires_grad = false;
  Device device{};
};

/// The frame. `metadata`: "" or a JSON object. Tensors that `compression` makes no shorter are
/// written as they are. Throws Error{invalid_argument} where a tensor's bytes do not match its
/// shape, a name comes twice, or the metadata is no JSON.
std::vector<std::byte> write_tensor_frame(std::span<const TensorView> tensors,
                                          std::string_view metadata = {},
                                          const LosslessOptions& compression = {
                                              .codec = Codec::none});

/// A tensor of a frame: a view into its bytes.
class StoredTensor {
 public:
  std::string_view name;
  DType dtype{};
  std::vector<std::uint64_t> shape;
  bool requires_grad = false;
  Device device{};
  Codec codec = Codec::none;          // none: `stored` is the data itself
  std::uint64_t bytes = 0;            // of the data
  std::span<const std::byte> stored;  // as it lies in the frame

  [[nodiscard]] std::uint64_t elements() const noexcept { return bytes / size_of(dtype); }
  /// The data in place, without a copy. Throws Error{invalid_argument} when it is compressed, of
  /// another type, or the frame was put at an address that T cannot live at (64 is always enough).
  template <Element T>
  [[nodiscard]] std::span<const T> as() const {
    check_view(DTypeOf<T>::value, alignof(T));
    return {reinterpret_cast<const T*>(stored.data()), stored.size() / sizeof(T)};
  }
  /// The data, unpacked if it must be; into.size() must be `bytes`.
  void copy_to(std::span<std::byte> into) const;

 private:
  void check_view(DType wanted, std::size_t alignment) const;
};

/// What may be believed of a stranger's frame.
struct TensorFrameLimits {
  std::uint64_t unpacked_bytes = std::uint64_t{1} << 40;  // of one tensor
  std::uint32_t metadata_bytes = 1U << 20;
  bool verify_data = true;  // the checksums of all data; the directory's is always verified
};

/// A frame that was read: views into `bytes`, which must outlive it.
class TensorFrame {
 public:
  /// Throws Error{invalid_argument} on anything that is not a whole and consistent frame, and
  /// Error{unsupported} on one of a later version. Allocates no more than a few times the size of
  /// the directory, whatever the frame says.
  explicit TensorFrame(std::span<const std::byte> bytes, const TensorFrameLimits& limits = {});

  [[nodiscard]] std::span<const StoredTensor> tensors() const noexcept { return tensors_; }
  /// Null when there is none of that name.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const noexcept;
  /// "" or a JSON object.
  [[nodiscard]] std::string_view metadata() const noexcept { return metadata_; }

 private:
  std::vector<StoredTensor> tensors_;
  std::string_view metadata_;
};

}  // namespace sinew
