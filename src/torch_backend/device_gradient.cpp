#include "torch_backend/device_gradient.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sinew {
namespace {

void wait_for_stream(const at::Tensor& tensor) {
  const auto device = tensor.device();
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

}  // namespace

std::size_t DeviceGradient::elements() const { return static_cast<std::size_t>(gradient_.numel()); }

void DeviceGradient::begin() {
  if (sum_.defined()) return;
  const at::NoGradGuard no_grad;
  sum_ = kept_.defined() ? gradient_ + kept_ : gradient_ + 0;  // -0 + 0 is 0, as everywhere
}

// Torch says nothing about which of several equal elements it takes, so it is asked how many there
// are of the least: in the common case all of them are taken, and there is nothing to decide.
FarGradient::Chosen DeviceGradient::choose(std::uint64_t most) {
  const at::NoGradGuard no_grad;
  begin();
  const auto wanted = static_cast<std::int64_t>(most);
  const auto magnitudes = sum_.abs();
  auto [largest, places] = magnitudes.topk(wanted, 0, /*largest=*/true, /*sorted=*/false);
  const auto least = largest.min(), greatest = largest.max();  // of which one is NaN if any is
  const auto above = (magnitudes >= least).sum();
  auto facts = host(3, at::kDouble);
  facts.copy_(at::stack({least.to(at::kDouble), greatest.to(at::kDouble), above.to(at::kDouble)}),
              /*non_blocking=*/true);
  auto chosen = bring(std::get<0>(places.to(at::kInt).sort()));
  const auto* fact = facts.data_ptr<double>();
  if (!std::isfinite(fact[1])) return {{}, false};
  if (fact[0] > 0 && fact[2] == static_cast<double>(wanted)) return chosen;
  return bring(exactly(magnitudes, wanted));
}

/// What at these places is, on the host; waits for it.
FarGradient::Chosen DeviceGradient::bring(const at::Tensor& places) {
  const auto items = places.numel();
  indices_ = host(items, at::kInt);
  values_ = host(items, at::kFloat);
  indices_.copy_(places, /*non_blocking=*/true);
  values_.copy_(sum_.index_select(0, places), /*non_blocking=*/true);
  wait_for_stream(sum_);
  const auto size = static_cast<std::size_t>(items);
  return {{{static_cast<const std::uint32_t*>(indices_.data_ptr()), size},
           {values_.data_ptr<float>(), size}},
          true};
}

/// Places of the largest that are not 0, of equal ones the first.
at::Tensor DeviceGradient::exactly(const at::Tensor& magnitudes, std::int64_t most) const {
  const auto least = std::get<0>(magnitudes.topk(most, 0, true, /*sorted=*/false)).min();
  const auto above = magnitudes > least, equal = magnitudes == least;
  const auto room = most - above.sum();
  const auto first = at::logical_and(equal, equal.cumsum(0) <= room);
  return at::logical_and(at::logical_or(above, first), magnitudes > 0).nonzero().flatten();
}

std::span<float> DeviceGradient::fetch() {
  const at::NoGradGuard no_grad;
  begin();
  whole_ = host(sum_.numel(), at::kFloat);
  whole_.copy_(sum_, /*non_blocking=*/true);
  wait_for_stream(sum_);
  return {whole_.data_ptr<float>(), elements()};
}

void DeviceGradient::take(std::span<const std::uint32_t> indices) {
  sent_.insert(sent_.end(), indices.begin(), indices.end());
}

void DeviceGradient::commit(const Items& result) {
  const at::NoGradGuard no_grad;
  const auto size = result.indices.size();
  const auto places = to_device(result.indices.data(), size, at::kInt).to(at::kLong);
  gradient_.zero_();
  gradient_.index_copy_(0, places, to_device(result.values.data(), size, at::kFloat));
  sum_.index_fill_(0, to_device(sent_.data(), sent_.size(), at::kInt).to(at::kLong), 0);
  sent_.clear();
  kept_ = std::move(sum_);
  sum_.reset();
}

void DeviceGradient::store() {
  const at::NoGradGuard no_grad;
  gradient_.copy_(whole_, /*non_blocking=*/true);
  kept_.reset();
  sum_.reset();
}

void DeviceGradient::roll_back(ErrorFeedback::Keep keep) {
  sent_.clear();
  if (!sum_.defined()) return;
  if (keep == ErrorFeedback::Keep::all) kept_ = std::move(sum_);
  sum_.reset();
}

void DeviceGradient::clear_gradient() {
  const at::NoGradGuard no_grad;
  gradient_.zero_();
}

void DeviceGradient::keep(std::span<const float> kept) {
  kept_ = to_device(kept.data(), kept.size(), at::kFloat);
}

void DeviceGradient::save(const std::vector<TensorSpec>& layout, State& state) const {
  if (!kept_.defined()) return;
  const auto kept = kept_.to(at::kCPU);
  ErrorFeedback::save(layout, {kept.data_ptr<float>(), static_cast<std::size_t>(kept.numel())},
                      state);
}

// Pinned for devices, so that copies run by themselves; torch hands such memory out again only when
// they are done.
at::Tensor DeviceGradient::host(std::int64_t elements, at::ScalarType type) const {
  return at::empty({elements},
                   at::TensorOptions().dtype(type).pinned_memory(!gradient_.device().is_cpu()));
}

at::Tensor DeviceGradient::to_device(const void* data, std::size_t elements,
                                     at::ScalarType type) const {
  auto memory = host(static_cast<std::int64_t>(elements), type);
  if (elements > 0) std::memcpy(memory.data_ptr(), data, elements * c10::elementSize(type));
  return memory.to(gradient_.device(), /*non_blocking=*/true);
}

}  // namespace sinew
