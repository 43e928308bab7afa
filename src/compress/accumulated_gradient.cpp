#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <sinew/compression.hpp>
#include <sinew/error.hpp>
#include "kernel/large_buffer.hpp"
#include "kernel/sparse.hpp"
#include "kernel/top_k.hpp"

namespace sinew {

struct AccumulatedGradient::Memory {
  std::uint64_t items = 0;
  std::optional<TopK> top;   // of so many items
  LargeBuffer<float> whole;  // of dense steps: what came in stays in `sum` until all went well
};

AccumulatedGradient::AccumulatedGradient(std::span<float> sum)
    : sum_(sum), memory_(std::make_unique<Memory>()) {}
AccumulatedGradient::~AccumulatedGradient() = default;

void AccumulatedGradient::write_result(std::span<float> to) const {
  if (to.size() != sum_.size())
    throw Error(Errc::invalid_argument,
                fmt::format("a result of {} elements into {}", sum_.size(), to.size()));
  if (was_dense_)
    std::copy(sum_.begin(), sum_.end(), to.begin());
  else
    write_sparse(to, {result_.indices, result_.values}, 1);
}

FarGradient::Chosen AccumulatedGradient::choose(std::uint64_t most) {
  auto& [items, top, whole] = *memory_;
  if (!top || items != most) top.emplace(sum_.size(), items = most);
  const auto chosen = top->choose(sum_);
  return {{chosen.indices, chosen.values}, chosen.finite};
}

std::span<float> AccumulatedGradient::fetch() {
  auto& whole = memory_->whole;
  whole.reserve(sum_.size());
  std::copy(sum_.begin(), sum_.end(), whole.data());
  return whole.all().first(sum_.size());
}

void AccumulatedGradient::take(std::span<const std::uint32_t> indices) {
  // Hardly any of these lines is in a cache, and a store alone does not fetch the one after it.
  constexpr std::size_t kAhead = 32;
  for (std::size_t i = 0; i < indices.size() + kAhead; ++i) {
    if (i < indices.size()) __builtin_prefetch(&sum_[indices[i]], 1);
    if (i >= kAhead) sum_[indices[i - kAhead]] = 0;
  }
}

void AccumulatedGradient::commit(const Items& result) {
  result_ = result;
  was_dense_ = false;
}

void AccumulatedGradient::store() {
  std::copy_n(memory_->whole.data(), sum_.size(), sum_.begin());
  result_ = {};
  was_dense_ = true;
}

void AccumulatedGradient::roll_back(ErrorFeedback::Keep /*keep*/) { clear_gradient(); }

void AccumulatedGradient::clear_gradient() {
  result_ = {};
  was_dense_ = false;
}

void AccumulatedGradient::keep(std::span<const float> kept) {
  for (std::size_t i = 0; i < kept.size(); ++i) sum_[i] += kept[i];
}

}  // namespace sinew
