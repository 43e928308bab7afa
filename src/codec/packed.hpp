// The packed form of some bytes, little-endian:
//
//   u32 'SNWL' | u8 version | u8 codec | u8 shuffle | u8 0 | u32 block_bytes | u32 0 | u64
//   raw_bytes u32 word for each block: bytes it takes, and in the highest bit whether it is as it
//   was the blocks
//
// Lengths of blocks follow from raw_bytes: all have block_bytes, the last one what is left.
#pragma once

#include <array>
#include <cstdint>

#include <sinew/lossless.hpp>

namespace sinew {

inline constexpr std::uint32_t kPackedMagic = 0x4C574E53;  // "SNWL"
inline constexpr std::uint8_t kPackedVersion = 1;
inline constexpr std::uint32_t kPlainBlock = 0x8000'0000U;
inline constexpr std::uint32_t kLongestBlock = 1U << 30;

struct PackedHead {
  std::uint32_t magic = kPackedMagic;
  std::uint8_t version = kPackedVersion;
  Codec codec = Codec::none;
  std::uint8_t shuffle = 1;
  std::uint8_t zero = 0;
  std::uint32_t block_bytes = 0;
  std::uint32_t zero_too = 0;
  std::uint64_t raw_bytes = 0;
};
static_assert(sizeof(PackedHead) == 24);

}  // namespace sinew
