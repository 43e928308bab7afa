#include "torch_backend/staged.hpp"

namespace sinew {

Elements elements_of(at::ScalarType type) noexcept {
  switch (type) {
    case at::kFloat:
      return {DType::f32};
    case at::kDouble:
      return {DType::f64};
    case at::kHalf:
      return {DType::f16};
    case at::kBFloat16:
      return {DType::bf16};
    case at::kChar:
      return {DType::i8};
    case at::kByte:
    case at::kBool:
      return {DType::u8};
    case at::kInt:
      return {DType::i32};
    case at::kLong:
      return {DType::i64};
    case at::kComplexFloat:
      return {DType::f32, 2};
    case at::kComplexDouble:
      return {DType::f64, 2};
    default:
      return {DType::u8, c10::elementSize(type)};
  }
}

at::ScalarType combined_type(at::ScalarType type) noexcept {
  return type == at::kShort ? at::kInt : type;
}

SideStream::SideStream(c10::Device device)
    : guard_(device.type()),
      device_(device),
      stream_(guard_.getStreamFromGlobalPool(device, /*isHighPriority=*/true)) {}

void SideStream::follow_caller() {
  c10::Event reached(device_.type());
  reached.record(guard_.getStream(device_));
  reached.block(stream_);
}

Staged::Staged(std::vector<at::Tensor> tensors, Use use, SideStream* side, at::ScalarType type)
    : tensors_(std::move(tensors)),
      use_(use),
      on_device_(side != nullptr),
      type_(type == at::ScalarType::Undefined ? tensors_.front().scalar_type() : type) {
  for (const auto& tensor : tensors_) elements_ += tensor.numel();
  bytes_ = static_cast<std::size_t>(elements_) * c10::elementSize(type_);
  if (!on_device_ && type_ == tensors_.front().scalar_type() && lie_in_a_row()) {
    data_ = tensors_.front().data_ptr();
    return;
  }
  host_ = at::empty({elements_},
                    at::TensorOptions().dtype(type_).device(at::kCPU).pinned_memory(on_device_));
  data_ = host_.data_ptr();
  if (!on_device_) {
    if (use_ != Use::writes) copy(/*to_host=*/true);
    return;
  }
  for (const auto& tensor : tensors_) tensor.record_stream(side->stream());
  const c10::StreamGuard on(side->stream());
  if (use_ != Use::writes) copy(/*to_host=*/true);
}

bool Staged::lie_in_a_row() const {
  const auto* next = static_cast<const char*>(tensors_.front().data_ptr());
  for (const auto& tensor : tensors_) {
    if (!tensor.is_contiguous() || (tensor.numel() > 0 && tensor.data_ptr() != next)) return false;
    next += tensor.nbytes();
  }
  return true;
}

void Staged::copy(bool to_host) {
  const at::NoGradGuard no_grad;
  std::int64_t first = 0;
  for (auto& tensor : tensors_) {
    auto part = host_.narrow(0, first, tensor.numel()).view(tensor.sizes());
    to_host ? part.copy_(tensor, on_device_) : tensor.copy_(part, on_device_);
    first += tensor.numel();
  }
}

void Staged::write_back() {
  if (host_.defined() && use_ != Use::reads) copy(/*to_host=*/false);
}

}  // namespace sinew
