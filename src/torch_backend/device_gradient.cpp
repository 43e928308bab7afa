#include "torch_backend/device_gradient.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>
#include <cstring>

namespace sinew {
namespace {

constexpr std::int64_t kSampleEvery = 64;
// How many more of a sample than its share are taken, so that the bound is almost never too high.
constexpr std::int64_t kSampleSlack = 64;

void wait_for_stream(const at::Tensor& tensor) {
  const auto device = tensor.device();
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

std::int64_t count(std::size_t elements) { return static_cast<std::int64_t>(elements); }

}  // namespace

std::size_t DeviceGradient::elements() const { return static_cast<std::size_t>(gradient_.numel()); }

void DeviceGradient::begin() {
  if (sum_.defined()) return;
  const at::NoGradGuard no_grad;
  sum_ = kept_.defined() ? gradient_ + kept_ : gradient_ + 0;  // -0 + 0 is 0, as everywhere
}

// Places of elements that are certain to hold the largest: a sample says above what to look.
at::Tensor DeviceGradient::largest(const at::Tensor& magnitudes, std::int64_t most) const {
  const auto sample = magnitudes.slice(0, 0, magnitudes.numel(), kSampleEvery);
  const auto wanted = most / kSampleEvery + most / (8 * kSampleEvery) + kSampleSlack;
  if (wanted < sample.numel()) {
    const auto bound = std::get<0>(sample.topk(wanted, 0, true, /*sorted=*/false)).min();
    auto places = at::logical_and(magnitudes >= bound, magnitudes > 0).nonzero().flatten();
    if (places.numel() >= most) return places;
  }
  return (magnitudes > 0).nonzero().flatten();
}

FarGradient::Chosen DeviceGradient::choose(std::uint64_t most) {
  const at::NoGradGuard no_grad;
  begin();
  const auto wanted = static_cast<std::int64_t>(most);
  const auto magnitudes = sum_.abs();
  // The maximum is NaN if any is.
  if (elements() > 0 && !std::isfinite(magnitudes.max().item<float>())) return {{}, false};
  auto places = largest(magnitudes, wanted);
  if (places.numel() > wanted) {
    const auto found = magnitudes.index_select(0, places);
    const auto least = std::get<0>(found.topk(wanted, 0, true, /*sorted=*/false)).min();
    const auto above = found > least, equal = found == least;
    const auto ties = wanted - above.sum();
    const auto chosen = at::logical_or(above, at::logical_and(equal, equal.cumsum(0) <= ties));
    places = places.masked_select(chosen);
  }
  const auto items = places.numel();
  auto& indices = host(indices_, items, at::kInt);
  auto& values = host(values_, items, at::kFloat);
  indices.narrow(0, 0, items).copy_(places, /*non_blocking=*/true);
  values.narrow(0, 0, items).copy_(sum_.index_select(0, places), /*non_blocking=*/true);
  wait_for_stream(sum_);
  const auto size = static_cast<std::size_t>(items);
  return {{{static_cast<const std::uint32_t*>(indices.data_ptr()), size},
           {values.data_ptr<float>(), size}},
          true};
}

std::span<float> DeviceGradient::fetch() {
  const at::NoGradGuard no_grad;
  begin();
  auto& memory = host(whole_, sum_.numel(), at::kFloat);
  memory.narrow(0, 0, sum_.numel()).copy_(sum_, /*non_blocking=*/true);
  wait_for_stream(sum_);
  return {memory.data_ptr<float>(), elements()};
}

void DeviceGradient::commit(const Items& result, std::span<const std::uint32_t> sent) {
  const at::NoGradGuard no_grad;
  const auto size = result.indices.size();
  // What was chosen has been sent: its memory is free.
  const auto places = to_device(indices_, result.indices.data(), size, at::kInt).to(at::kLong);
  gradient_.zero_();
  gradient_.index_copy_(0, places, to_device(values_, result.values.data(), size, at::kFloat));
  sum_.index_fill_(0, to_device(gone_, sent.data(), sent.size(), at::kInt).to(at::kLong), 0);
  kept_ = std::move(sum_);
  sum_.reset();
}

void DeviceGradient::store() {
  const at::NoGradGuard no_grad;
  gradient_.copy_(whole_.narrow(0, 0, gradient_.numel()).view_as(gradient_), true);
  kept_.reset();
  sum_.reset();
}

void DeviceGradient::roll_back(ErrorFeedback::Keep keep) {
  if (!sum_.defined()) return;
  if (keep == ErrorFeedback::Keep::all) kept_ = std::move(sum_);
  sum_.reset();
}

void DeviceGradient::clear_gradient() {
  const at::NoGradGuard no_grad;
  gradient_.zero_();
}

void DeviceGradient::keep(std::span<const float> kept) {
  const at::NoGradGuard no_grad;
  kept_ = to_device(whole_, kept.data(), kept.size(), at::kFloat).clone();
}

void DeviceGradient::save(const std::vector<TensorSpec>& layout, State& state) const {
  if (!kept_.defined()) return;
  const auto kept = kept_.to(at::kCPU);
  ErrorFeedback feedback(layout);
  feedback.accumulate({kept.data_ptr<float>(), static_cast<std::size_t>(kept.numel())});
  feedback.commit();
  feedback.save(state);
}

at::Tensor& DeviceGradient::host(at::Tensor& memory, std::int64_t elements, at::ScalarType type) {
  if (!memory.defined() || memory.numel() < elements)
    memory = at::empty({elements + elements / 8},
                       at::TensorOptions().dtype(type).pinned_memory(!gradient_.device().is_cpu()));
  return memory;
}

at::Tensor DeviceGradient::to_device(at::Tensor& memory, const void* data, std::size_t elements,
                                     at::ScalarType type) {
  auto part = host(memory, count(elements), type).narrow(0, 0, count(elements));
  // The last copy out of it may still be under way.
  wait_for_stream(gradient_);
  if (elements > 0) std::memcpy(part.data_ptr(), data, elements * c10::elementSize(type));
  return part.to(gradient_.device(), /*non_blocking=*/true);
}

}  // namespace sinew
