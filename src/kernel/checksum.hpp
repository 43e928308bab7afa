// A checksum of bytes that finds damage, as fast as they can be read from a near cache.
//
// Sixteen lanes of 16 bytes, which begin as the bytes 0 to 255, take the data in turn: a lane
// becomes AES round(lane) xor data, the last stripe of 256 bytes filled up with zeros. After four
// more rounds each, with the bytes 0 to 15 as data, a lane that begins as the length
// (little-endian) takes all sixteen lanes, and the bytes 0 to 15 three times; its first eight
// bytes, little-endian, are the sum. A round is one instruction, for one lane or for four, and
// takes four cycles: with sixteen lanes on their way nobody waits for it. It is a permutation: what
// has changed in one place of a lane goes on to its end. Without the four rounds it would not have
// spread by then, and one changed byte in each of two lanes could cancel each other, one time in a
// hundred. It protects against accidents, not against people: for those there is TLS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sinew {

[[nodiscard]] std::uint64_t checksum(std::span<const std::byte> bytes) noexcept;

/// The same, a byte at a time: what the fast one is tested against.
[[nodiscard]] std::uint64_t checksum_scalar(std::span<const std::byte> bytes) noexcept;

}  // namespace sinew
