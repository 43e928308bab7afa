#include "train/gradient_frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <sinew/error.hpp>

namespace sinew {
namespace {

template <Element T>
TensorView view(std::string_view name, std::span<const T> values, const std::uint64_t& elements) {
  return {name, DTypeOf<T>::value, {&elements, 1}, std::as_bytes(values)};
}

const StoredTensor& need(const TensorFrame& frame, std::string_view name) {
  const auto* found = frame.find(name);
  if (found == nullptr)
    throw Error(Errc::invalid_argument, fmt::format("a gradient without '{}'", name));
  return *found;
}

}  // namespace

GradientPacker::GradientPacker(std::size_t elements, double density)
    : feedback_({{"gradient", {elements}}}, ErrorFeedback::Undo::no) {
  if (density > 0)
    top_.emplace(elements, std::max<std::size_t>(1, static_cast<std::size_t>(std::floor(
                                                        density * static_cast<double>(elements)))));
}

std::vector<std::byte> GradientPacker::pack(std::span<const float> gradient, const Score& score) {
  const double words[] = {score.loss, static_cast<double>(score.errors),
                          static_cast<double>(score.labels), static_cast<double>(score.samples)};
  const std::uint64_t four = 4;
  std::vector<TensorView> tensors{view<double>("score", words, four)};
  if (!top_) {
    const std::uint64_t elements = items_ = gradient.size();
    tensors.push_back(view<float>("gradient", gradient, elements));
    return write_tensor_frame(tensors);
  }
  const auto [kept, gone, sum] = feedback_.begin();
  const auto chosen = top_->accumulate(gradient, {kept, gone}, sum);
  const std::uint64_t elements = items_ = chosen.indices.size();
  // Indices are no type of tensors; as bytes they are read in place all the same.
  const std::uint64_t bytes = elements * sizeof(std::uint32_t);
  tensors.push_back({"indices", DType::u8, {&bytes, 1}, std::as_bytes(chosen.indices)});
  tensors.push_back(view<float>("values", chosen.values, elements));
  auto frame = write_tensor_frame(tensors);
  feedback_.take(chosen.indices);
  feedback_.commit();
  return frame;
}

Score add_gradient(std::span<const std::byte> bytes, std::span<float> sum) {
  const TensorFrame frame(bytes);
  const auto words = need(frame, "score").as<double>();
  if (words.size() != 4) throw Error(Errc::invalid_argument, "a score that is none");
  if (const auto* whole = frame.find("gradient")) {
    const auto values = whole->as<float>();
    if (values.size() != sum.size())
      throw Error(Errc::invalid_argument, fmt::format("a gradient of {} elements for a model of {}",
                                                      values.size(), sum.size()));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  } else {
    const auto values = need(frame, "values").as<float>();
    const auto stored = need(frame, "indices").as<std::uint8_t>();
    if (stored.size() != values.size() * sizeof(std::uint32_t))
      throw Error(Errc::invalid_argument, "a gradient with more values than indices, or fewer");
    const auto* indices = reinterpret_cast<const std::uint32_t*>(stored.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (indices[i] >= sum.size())
        throw Error(Errc::invalid_argument,
                    fmt::format("element {} of a model of {}", indices[i], sum.size()));
      sum[indices[i]] += values[i];
    }
  }
  return {words[0], static_cast<std::uint64_t>(words[1]), static_cast<std::uint64_t>(words[2]),
          static_cast<std::uint64_t>(words[3])};
}

}  // namespace sinew
