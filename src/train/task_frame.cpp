#include "train/task_frame.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sinew/error.hpp>

namespace sinew {
namespace {

template <Element T>
std::span<const T> values_of(const TensorFrame& frame, std::string_view name) {
  const auto* found = frame.find(name);
  if (found == nullptr)
    throw Error(Errc::invalid_argument, fmt::format("a task without '{}'", name));
  return found->as<T>();
}

}  // namespace

std::vector<std::byte> write_task(const WorkerTask& task, const Batch& batch,
                                  std::span<const float> parameters) {
  const std::uint64_t words[] = {task.step, task.random_key, task.stop ? 1U : 0U};
  std::vector<std::vector<std::uint64_t>> shapes;
  shapes.reserve(8);
  std::vector<TensorView> tensors;
  const auto add = [&](std::string_view name, DType dtype, std::span<const std::byte> bytes,
                       std::vector<std::uint64_t> shape) {
    tensors.push_back({name, dtype, shapes.emplace_back(std::move(shape)), bytes});
  };
  const auto add_list = [&](std::string_view name, const std::vector<std::int64_t>& list) {
    add(name, DType::i64, std::as_bytes(std::span(list)), {list.size()});
  };
  add("task", DType::u64, std::as_bytes(std::span(words)), {std::size(words)});
  add("scale", DType::f32, std::as_bytes(std::span(&task.scale, 1)), {1});
  add("parameters", DType::f32, std::as_bytes(parameters), {parameters.size()});
  add("inputs", DType::f32, std::as_bytes(std::span(batch.inputs)),
      batch.inputs.empty() ? std::vector<std::uint64_t>{0}
                           : std::vector<std::uint64_t>(batch.shape.begin(), batch.shape.end()));
  add_list("labels", batch.labels);
  add_list("input_lengths", batch.input_lengths);
  add_list("label_lengths", batch.label_lengths);
  return write_tensor_frame(tensors);
}

WorkerTask read_task(std::span<const std::byte> bytes, Batch& batch, std::span<float> parameters) {
  const TensorFrame frame(bytes);
  const auto words = values_of<std::uint64_t>(frame, "task");
  const auto scale = values_of<float>(frame, "scale");
  const auto values = values_of<float>(frame, "parameters");
  if (words.size() != 3 || scale.size() != 1 || values.size() != parameters.size())
    throw Error(Errc::invalid_argument, fmt::format("a task with {} parameters for a model of {}",
                                                    values.size(), parameters.size()));
  std::copy(values.begin(), values.end(), parameters.begin());
  const auto inputs = values_of<float>(frame, "inputs");
  batch.inputs.assign(inputs.begin(), inputs.end());
  const auto& shape = frame.find("inputs")->shape;
  batch.shape.assign(shape.begin(), shape.end());
  const auto read_list = [&](std::string_view name, std::vector<std::int64_t>& into) {
    const auto list = values_of<std::int64_t>(frame, name);
    into.assign(list.begin(), list.end());
  };
  read_list("labels", batch.labels);
  read_list("input_lengths", batch.input_lengths);
  read_list("label_lengths", batch.label_lengths);
  return {words[0], words[1], scale[0], words[2] != 0};
}

}  // namespace sinew
