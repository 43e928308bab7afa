#include "torch_backend/arguments.hpp"

namespace sinew {

void refuse(const std::string& why) { throw BackendError(Error(Errc::invalid_argument, why), why); }

at::Tensor& only(Tensors& tensors, const char* name) {
  if (tensors.size() != 1)
    refuse(c10::str(name, " takes one tensor, and not ", tensors.size(),
                    ": give it one for each process"));
  if (tensors.front().layout() != at::kStrided)
    refuse(c10::str(name, " of a sparse tensor: give it to_dense(), or its indices and values"));
  return tensors.front();
}

namespace {

/// How values of a torch type are combined.
struct Reduction {
  DType dtype{};
  ReduceOp op{};
  std::size_t each = 1;
};

Reduction reduction_of(at::ScalarType type, const c10d::ReduceOp& wanted, const char* name) {
  using Torch = c10d::ReduceOp::RedOpType;
  const auto elements = elements_of(combined_type(type));
  ReduceOp op{};
  switch (static_cast<Torch>(wanted)) {
    case Torch::SUM:
      op = type == at::kBool ? ReduceOp::max : ReduceOp::sum;
      break;
    case Torch::AVG:
      op = ReduceOp::avg;
      break;
    case Torch::PRODUCT:
      op = type == at::kBool ? ReduceOp::min : ReduceOp::prod;
      break;
    case Torch::MIN:
      op = ReduceOp::min;
      break;
    case Torch::MAX:
      op = ReduceOp::max;
      break;
    case Torch::BAND:
      op = ReduceOp::band;
      break;
    case Torch::BOR:
      op = ReduceOp::bor;
      break;
    case Torch::BXOR:
      op = ReduceOp::bxor;
      break;
    default:
      refuse(c10::str(name, ": sinew has no PREMUL_SUM; multiply first, then use SUM"));
  }
  const bool adds = op == ReduceOp::sum || op == ReduceOp::avg;
  const bool known = elements.dtype != DType::u8 || type == at::kByte || type == at::kBool;
  if (!known || (elements.each > 1 && !adds) || !supports(elements.dtype, op))
    refuse(c10::str(name, ": ", c10::toString(type), " cannot be combined by ", sinew::name(op),
                    "; convert the tensor first, e.g. to float32 or int32"));
  return {elements.dtype, op, elements.each};
}

}  // namespace

Call call_to_move(Collective collective, at::ScalarType type, std::int64_t torch_elements,
                  int root) {
  const auto elements = elements_of(type);
  return {.collective = collective,
          .dtype = elements.dtype,
          .root = root,
          .count = static_cast<std::size_t>(torch_elements) * elements.each};
}

Call call_to_combine(Collective collective, at::ScalarType type, std::int64_t torch_elements,
                     const c10d::ReduceOp& op, const char* name, int root) {
  const auto reduction = reduction_of(type, op, name);
  return {.collective = collective,
          .dtype = reduction.dtype,
          .op = reduction.op,
          .root = root,
          .count = static_cast<std::size_t>(torch_elements) * reduction.each};
}

std::vector<std::size_t> uneven_counts(const Tensors& tensors, at::ScalarType type) {
  std::vector<std::size_t> counts;
  const auto each = elements_of(type).each;
  bool even = true;
  for (const auto& tensor : tensors) {
    counts.push_back(static_cast<std::size_t>(tensor.numel()) * each);
    even &= tensor.numel() == tensors.front().numel();
  }
  if (even) counts.clear();
  return counts;
}

void check_list(const Tensors& tensors, int size, const at::Tensor& like, const char* name) {
  if (static_cast<int>(tensors.size()) != size)
    refuse(c10::str(name, ": ", tensors.size(), " tensors for ", size, " ranks"));
  for (const auto& tensor : tensors)
    if (tensor.scalar_type() != like.scalar_type() || tensor.device() != like.device())
      refuse(c10::str(name, ": tensors of one type on one device are needed, and not ",
                      c10::toString(tensor.scalar_type()), " on ", tensor.device().str(),
                      " beside ", c10::toString(like.scalar_type()), " on ", like.device().str()));
}

void check_total(std::int64_t has, std::int64_t needs, const char* name, const char* which) {
  if (has != needs)
    refuse(c10::str(name, ": the ", which, " has ", has, " elements, and ", needs, " are needed"));
}

}  // namespace sinew
