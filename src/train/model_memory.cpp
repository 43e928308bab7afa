#include "train/model_memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>

#include <sinew/error.hpp>

namespace sinew {

ModelMemory::ModelMemory(Learner& learner, const BucketPlan& plan, const GradientReducer& reducer)
    : parameters_(plan.elements) {
  std::size_t kept = 0;
  for (const auto& buffer : learner.buffers()) kept += buffer.elements();
  buffers_.resize(kept);
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const auto& spec = plan.parameters[i];
    homes_.parameters.push_back(std::span(parameters_).subspan(plan.first_of[i], spec.elements()));
    homes_.gradients.push_back(reducer.gradient(i));
    tensors_.push_back({"parameter/" + spec.name, spec, homes_.parameters.back()});
  }
  std::size_t first = 0;
  for (const auto& spec : learner.buffers()) {
    homes_.buffers.push_back(std::span(buffers_).subspan(first, spec.elements()));
    tensors_.push_back({"buffer/" + spec.name, spec, homes_.buffers.back()});
    first += spec.elements();
  }
  learner.move_to(homes_);
}

void ModelMemory::move_gradients(Learner& learner, const GradientReducer& reducer) {
  for (std::size_t i = 0; i < homes_.gradients.size(); ++i)
    homes_.gradients[i] = reducer.gradient(i);
  learner.move_to(homes_);
}

std::uint64_t ModelMemory::hash() const noexcept {
  return XXH3_64bits(parameters_.data(), parameters_.size() * sizeof(float)) ^
         XXH3_64bits_withSeed(buffers_.data(), buffers_.size() * sizeof(float), 1);
}

void ModelMemory::save(Snapshot& into) const {
  for (const auto& tensor : tensors_) {
    into.state.put(tensor.name, std::span<const float>(tensor.values));
    into.shapes.push_back({tensor.name, tensor.spec.shape});
  }
}

void ModelMemory::load(const Snapshot& from) {
  for (const auto& tensor : tensors_) {
    const auto at = std::find_if(from.shapes.begin(), from.shapes.end(),
                                 [&](const auto& spec) { return spec.name == tensor.name; });
    if (at == from.shapes.end())
      throw Error(Errc::invalid_argument,
                  fmt::format("the checkpoint has no {}: it is of another model", tensor.name));
    if (at->elements() != tensor.values.size())
      throw Error(
          Errc::invalid_argument,
          fmt::format("{} is {} in the checkpoint and {} here: it is of another model", tensor.name,
                      fmt::join(at->shape, " x "), fmt::join(tensor.spec.shape, " x ")));
  }
  for (const auto& tensor : tensors_) {
    const auto values = from.state.get<float>(tensor.name);
    std::copy(values.begin(), values.end(), tensor.values.begin());
  }
}

}  // namespace sinew
