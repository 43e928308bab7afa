#include "torch/net.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <xxhash.h>

#include "base/counter_random.hpp"

namespace sinew {

at::Tensor Net::add(const std::string& name, at::Tensor values) {
  values.requires_grad_(true);
  parameters_.push_back({name, values});
  return values;
}

at::Tensor Net::uniform(const std::string& name, at::IntArrayRef shape, double bound) {
  auto values = at::empty(shape, at::kFloat);
  const auto key = random_key(seed_, XXH3_64bits(name.data(), name.size()));
  auto* to = values.data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i)
    to[i] = static_cast<float>(bound) * (2 * random_unit(key, static_cast<std::uint64_t>(i)) - 1);
  return add(name, std::move(values));
}

at::Tensor Net::constant(const std::string& name, at::IntArrayRef shape, double value) {
  return add(name, at::full(shape, value, at::kFloat));
}

at::Tensor Net::buffer(const std::string& name, at::IntArrayRef shape, double value) {
  buffers_.push_back({name, at::full(shape, value, at::kFloat)});
  return buffers_.back().tensor;
}

}  // namespace sinew
