// Tensors as what the communicator takes: one flat piece of host memory. Where a tensor is that
// already, it is used as it lies; otherwise a copy is, pinned where the tensor is on a device.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <vector>

#include <sinew/types.hpp>

namespace sinew {

/// How elements of a torch type travel: as one of ours, or as several (complex numbers, bytes).
struct Elements {
  DType dtype = DType::u8;
  std::size_t each = 1;  // of ours in one of torch's
};
/// For moving: every type there is.
Elements elements_of(at::ScalarType type) noexcept;

/// The type in which values of `type` are combined: its own, but int32 for int16, which the library
/// does not have. What is left of the wider result are the bits of int16's own arithmetic: sums and
/// products wrap around at 2^16 alike, bits stay in their places, and of values that fit the
/// smallest and the largest fit. Another type in every kernel would only save a conversion.
at::ScalarType combined_type(at::ScalarType type) noexcept;

/// The stream on which a device's tensors are copied, behind what was computed when they were given
/// to us. Not tied to any kind of device: torch's own guards do it.
class SideStream {
 public:
  explicit SideStream(c10::Device device);
  /// What comes on this stream comes after what the caller's stream has got so far.
  void follow_caller();
  void synchronize() const { guard_.synchronizeStream(stream_); }
  [[nodiscard]] c10::Stream stream() const { return stream_; }

 private:
  c10::impl::VirtualGuardImpl guard_;
  c10::Device device_;
  c10::Stream stream_;
};

/// One tensor or several of a type, one after the other in host memory.
class Staged {
 public:
  enum class Use { reads, writes, both };
  /// Begins to copy where a copy is needed. `side`: of the tensors' device; null on the host.
  /// `type`: what elements are converted to, and back from; undefined: their own.
  Staged(std::vector<at::Tensor> tensors, Use use, SideStream* side,
         at::ScalarType type = at::ScalarType::Undefined);

  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::int64_t elements() const noexcept { return elements_; }
  [[nodiscard]] at::ScalarType type() const noexcept { return type_; }
  /// Into the tensors, where there was a copy.
  void write_back();

 private:
  [[nodiscard]] bool lie_in_a_row() const;
  void copy(bool to_host);

  std::vector<at::Tensor> tensors_;
  Use use_;
  bool on_device_;
  at::ScalarType type_;
  at::Tensor host_;  // undefined: the tensors themselves
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::int64_t elements_ = 0;
};

}  // namespace sinew
