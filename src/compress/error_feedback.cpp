#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include <sinew/error.hpp>
#include <sinew/scheme.hpp>
#include "kernel/large_buffer.hpp"
#include "kernel/reduce.hpp"

namespace sinew {
namespace {

// Past this the sum does not stay in cache, and ordinary stores would first read what they replace.
constexpr std::size_t kStreamingElements = std::size_t{1} << 20;

std::string residual_name(const TensorSpec& tensor) { return "residual/" + tensor.name; }

void check_layout(const std::vector<TensorSpec>& layout) {
  std::vector<std::string_view> names;
  for (const auto& tensor : layout) {
    if (tensor.elements() == 0)
      throw Error(
          Errc::invalid_argument,
          fmt::format("tensor '{}' has no elements; leave it out of the layout", tensor.name));
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw Error(Errc::invalid_argument,
                fmt::format("two tensors are named '{}'; residuals are kept by name", *twice));
}

}  // namespace

std::size_t TensorSpec::elements() const noexcept {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

namespace {

// A bit for each element that was taken and is not yet 0.
class Taken {
 public:
  explicit Taken(std::size_t elements) : words_((elements + 63) / 64) {}
  void add(std::span<const std::uint32_t> indices) noexcept {
    any_ = any_ || !indices.empty();
    for (const auto index : indices) words_[index / 64] |= std::uint64_t{1} << index % 64;
  }
  /// All of the words, for someone who writes each.
  [[nodiscard]] std::span<std::uint64_t> to_write() noexcept {
    any_ = true;
    return words_;
  }
  void forget() noexcept {
    if (std::exchange(any_, false)) std::fill(words_.begin(), words_.end(), 0);
  }
  void clear_in(std::span<float> values) noexcept {
    if (!any_) return;
    for (std::size_t word = 0; word < words_.size(); ++word)
      for (auto bits = words_[word]; bits != 0; bits &= bits - 1)
        values[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))] = 0;
    forget();
  }
  /// Empty if there is none.
  [[nodiscard]] std::span<const std::uint64_t> words() const noexcept {
    return any_ ? std::span(words_) : std::span<const std::uint64_t>();
  }

 private:
  std::vector<std::uint64_t> words_;
  bool any_ = false;
};

}  // namespace

struct ErrorFeedback::Memory {
  explicit Memory(std::size_t elements) : buffer(elements), taken(elements), before(elements) {}
  std::span<float> settled() noexcept {
    taken.clear_in(buffer.all());
    return buffer.all();
  }
  LargeBuffer<float> buffer;
  Taken taken;
  Taken before;  // without undo: while a kernel turns what was kept into a sum in the same place
};

ErrorFeedback::ErrorFeedback(std::vector<TensorSpec> layout, Undo undo)
    : layout_(std::move(layout)), undo_(undo) {
  check_layout(layout_);
  for (const auto& tensor : layout_) elements_ += tensor.elements();
}
ErrorFeedback::ErrorFeedback(ErrorFeedback&&) noexcept = default;
ErrorFeedback& ErrorFeedback::operator=(ErrorFeedback&&) noexcept = default;
ErrorFeedback::~ErrorFeedback() = default;

std::span<const float> ErrorFeedback::kept() const noexcept {
  return kept_ ? kept_->settled() : std::span<float>();
}

ErrorFeedback::Memory& ErrorFeedback::pending_memory() const noexcept {
  return undo_ == Undo::yes ? *pending_ : *kept_;
}

std::span<float> ErrorFeedback::pending() noexcept {
  return in_step_ ? pending_memory().settled() : std::span<float>();
}

ErrorFeedback::Step ErrorFeedback::begin() {
  if (!kept_) clear();
  if (undo_ == Undo::yes && !pending_) pending_ = std::make_unique<Memory>(elements_);
  auto& gone = undo_ == Undo::yes ? kept_->taken : kept_->before;
  if (undo_ == Undo::no) std::swap(kept_->before, kept_->taken);
  pending_memory().taken.forget();
  in_step_ = true;
  return {kept_->buffer.all(), gone.words(), pending_memory().buffer.all()};
}

std::span<float> ErrorFeedback::accumulate(std::span<const float> gradient) {
  if (gradient.size() != elements_)
    throw Error(
        Errc::invalid_argument,
        fmt::format("a gradient of {} elements for a residual of {}", gradient.size(), elements_));
  if (!kept_) clear();
  const auto before = kept();  // all of it settled
  const auto sum = begin().sum;
  if (elements_ == 0) return sum;
  const auto reducer = find_reducer(DType::f32, ReduceOp::sum);
  std::byte* const into = std::as_writable_bytes(sum).data();
  const std::byte* const from[] = {std::as_bytes(gradient).data(), std::as_bytes(before).data()};
  reducer.fold({&into, 1}, {from, 2}, elements_,
               undo_ == Undo::yes && elements_ >= kStreamingElements ? 1 : 0);
  return sum;
}

void ErrorFeedback::take(std::span<const std::uint32_t> indices) noexcept {
  pending_memory().taken.add(indices);
}

std::span<std::uint64_t> ErrorFeedback::take_by_bits() noexcept {
  return pending_memory().taken.to_write();
}

void ErrorFeedback::commit() {
  if (!in_step_)
    throw Error(Errc::invalid_argument, "error feedback: commit() without a step; begin() first");
  if (undo_ == Undo::yes) std::swap(kept_, pending_);
  in_step_ = false;
}

void ErrorFeedback::roll_back(Keep keep) {
  if (!in_step_) return;
  if (keep == Keep::all) return commit();
  if (undo_ == Undo::no)
    throw Error(Errc::invalid_argument, "error feedback: made without undo, so it forgets no step");
  in_step_ = false;
}

void ErrorFeedback::clear() {
  if (!kept_) kept_ = std::make_unique<Memory>(elements_);
  std::memset(kept_->buffer.data(), 0, elements_ * sizeof(float));
  kept_->taken.forget();  // of what comes into its place nothing is gone
  in_step_ = false;
}

void ErrorFeedback::save(State& state) const { save(layout_, kept(), state); }

void ErrorFeedback::save(const std::vector<TensorSpec>& layout, std::span<const float> kept,
                         State& state) {
  std::vector<float> nothing;
  auto rest = kept;
  for (const auto& tensor : layout) {
    const auto elements = tensor.elements();
    if (kept.empty()) {
      nothing.resize(std::max(nothing.size(), elements));
      state.put(residual_name(tensor), std::span<const float>(nothing).first(elements));
    } else {
      state.put(residual_name(tensor), rest.first(elements));
      rest = rest.subspan(elements);
    }
  }
}

void ErrorFeedback::load(const State& state) {
  std::vector<float> all;
  all.reserve(elements_);
  for (const auto& tensor : layout_) {
    const auto values = state.get<float>(residual_name(tensor));
    if (values.size() != tensor.elements())
      throw Error(Errc::invalid_argument,
                  state.contains(residual_name(tensor))
                      ? fmt::format("the saved residual of '{}' has {} elements, the tensor {}",
                                    tensor.name, values.size(), tensor.elements())
                      : fmt::format("no residual was saved for tensor '{}'", tensor.name));
    all.insert(all.end(), values.begin(), values.end());
  }
  clear();
  std::copy(all.begin(), all.end(), kept_->buffer.data());
}

}  // namespace sinew
