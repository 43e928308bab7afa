// What operations are called, in error messages and in descriptors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sinew/transport.hpp>

namespace sinew {

/// Text of an operation for error messages: "allreduce of 1000 f32 sum by ring".
std::string describe(const OpDescriptor& descriptor);
/// Hash by which an algorithm's name travels in descriptors.
std::uint64_t algorithm_key(std::string_view name) noexcept;

}  // namespace sinew
