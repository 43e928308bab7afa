// Conversion between f32 and the 16-bit formats over whole arrays.
#pragma once

#include <cstddef>
#include <span>

#include <sinew/types.hpp>

namespace sinew {

void convert(std::span<const float> from, std::span<f16> to) noexcept;
void convert(std::span<const float> from, std::span<bf16> to) noexcept;
void convert(std::span<const f16> from, std::span<float> to) noexcept;
void convert(std::span<const bf16> from, std::span<float> to) noexcept;

/// to += from.
void add_converted(std::span<const bf16> from, std::span<float> to) noexcept;

}  // namespace sinew
