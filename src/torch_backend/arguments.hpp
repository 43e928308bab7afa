// What torch hands over, checked, and as calls of the communicator. Whatever does not fit throws
// BackendError{invalid_argument} that names the operation and says what to give instead.
#pragma once

#include <string>
#include <vector>

#include "torch_backend/backend.hpp"

namespace sinew {

[[noreturn]] void refuse(const std::string& why);

/// The tensor of an operation that takes one for each device of a process, of which we drive one.
at::Tensor& only(Tensors& tensors, const char* name);
/// One tensor for each of `size` ranks, all of the type and on the device of `like`.
void check_list(const Tensors& tensors, int size, const at::Tensor& like, const char* name);
void check_total(std::int64_t has, std::int64_t needs, const char* name, const char* which);
/// Elements of each tensor as they travel, staged as `type`; empty where all are equal.
std::vector<std::size_t> uneven_counts(const Tensors& tensors, at::ScalarType type);

Call call_to_move(Collective collective, at::ScalarType type, std::int64_t torch_elements,
                  int root = 0);
/// Of what is staged as combined_type(type).
Call call_to_combine(Collective collective, at::ScalarType type, std::int64_t torch_elements,
                     const c10d::ReduceOp& op, const char* name, int root = 0);

}  // namespace sinew
