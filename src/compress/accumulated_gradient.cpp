#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include <sinew/compression.hpp>
#include <sinew/error.hpp>
#include "kernel/large_buffer.hpp"
#include "kernel/sparse.hpp"
#include "kernel/top_k.hpp"

namespace sinew {

namespace {

/// Writes that wait until their lines have come: hardly any is in a cache.
class LateWrites {
 public:
  /// `value_of`: of the i-th.
  template <class ValueOf>
  void add(std::span<float> to, std::span<const std::uint32_t> indices, ValueOf value_of) {
    for (std::size_t begin = 0; begin < indices.size(); begin += kTogether) {
      const auto piece = indices.subspan(begin, std::min(kTogether, indices.size() - begin));
      for (const auto index : piece) __builtin_prefetch(&to[index], 1);
      flush(to);
      std::copy(piece.begin(), piece.end(), indices_.begin());
      for (std::size_t i = 0; i < piece.size(); ++i) values_[i] = value_of(begin + i);
      count_ = piece.size();
    }
  }
  void flush(std::span<float> to) noexcept {
    for (std::size_t i = 0; i < count_; ++i) to[indices_[i]] = values_[i];
    count_ = 0;
  }
  void forget() noexcept { count_ = 0; }

 private:
  static constexpr std::size_t kTogether = 256;
  std::array<std::uint32_t, kTogether> indices_{};
  std::array<float, kTogether> values_{};
  std::size_t count_ = 0;
};

}  // namespace

struct AccumulatedGradient::Memory {
  std::uint64_t items = 0;
  std::optional<TopK> top;        // of so many items
  Magnitude likely = kUnreached;  // to be sent
  Items chosen;                   // in this step
  LateWrites late;
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

void AccumulatedGradient::expect(float least) { memory_->likely = magnitude(least); }

FarGradient::Chosen AccumulatedGradient::choose(std::uint64_t most) {
  auto& [items, top, likely, chosen, late, whole] = *memory_;
  if (!top || items != most) top.emplace(sum_.size(), items = most);
  const auto found = top->choose_taking(sum_, std::exchange(likely, kUnreached));
  chosen = {found.indices, found.values};
  return {chosen, found.finite, std::bit_cast<float>(std::min(found.taken, kInfinity))};
}

/// As it was before choose().
void AccumulatedGradient::restore() noexcept {
  auto& [items, top, likely, chosen, late, whole] = *memory_;
  late.forget();
  for (std::size_t i = 0; i < chosen.indices.size(); ++i)
    sum_[chosen.indices[i]] = chosen.values[i];
  chosen = {};
}

std::span<float> AccumulatedGradient::fetch() {
  restore();
  auto& whole = memory_->whole;
  if (whole.size() != sum_.size()) whole = LargeBuffer<float>(sum_.size());
  std::copy(sum_.begin(), sum_.end(), whole.data());
  return whole.all();
}

void AccumulatedGradient::take(std::span<const std::uint32_t> indices) {
  memory_->late.add(sum_, indices, [](std::size_t) { return 0.0F; });
}

void AccumulatedGradient::give_back(const Items& items) {
  memory_->late.add(sum_, items.indices, [&](std::size_t i) { return items.values[i]; });
}

void AccumulatedGradient::commit(const Items& result) {
  memory_->late.flush(sum_);
  memory_->chosen = {};
  result_ = result;
  was_dense_ = false;
}

void AccumulatedGradient::store() {
  std::copy_n(memory_->whole.data(), sum_.size(), sum_.begin());
  result_ = {};
  was_dense_ = true;
}

void AccumulatedGradient::roll_back(ErrorFeedback::Keep /*keep*/) {
  restore();
  clear_gradient();
}

void AccumulatedGradient::clear_gradient() {
  result_ = {};
  was_dense_ = false;
}

void AccumulatedGradient::keep(std::span<const float> kept) {
  for (std::size_t i = 0; i < kept.size(); ++i) sum_[i] += kept[i];
}

}  // namespace sinew
