// Byte shuffle: all first bytes of a block of elements, then all second bytes, and so on. Exponents
// of floats resemble each other, and beside each other they compress.
#pragma once

#include <cstddef>
#include <span>

namespace sinew {

/// `from` and `to` have equal sizes and do not overlap; `width`: bytes of an element, 1 or more.
/// Bytes after the last whole element stay where they are.
void shuffle_bytes(std::span<const std::byte> from, std::size_t width,
                   std::span<std::byte> to) noexcept;
void unshuffle_bytes(std::span<const std::byte> from, std::size_t width,
                     std::span<std::byte> to) noexcept;

/// Byte by byte: what the SIMD ones are tested against.
void shuffle_bytes_scalar(std::span<const std::byte> from, std::size_t width,
                          std::span<std::byte> to) noexcept;
void unshuffle_bytes_scalar(std::span<const std::byte> from, std::size_t width,
                            std::span<std::byte> to) noexcept;

}  // namespace sinew
