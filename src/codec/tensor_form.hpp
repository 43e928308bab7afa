// The parts of a tensor frame as they lie in memory; docs/format-tensor.md describes them.
#pragma once

#include <cstdint>
#include <string_view>

namespace sinew {

inline constexpr std::uint32_t kFrameMagic = 0x54574E53;  // "SNWT"
inline constexpr std::uint16_t kFrameVersion = 1;
inline constexpr std::uint64_t kFrameAlignment = 64;
inline constexpr std::uint16_t kMostDimensions = 64;
inline constexpr std::uint8_t kRequiresGrad = 1;

struct FrameHead {
  std::uint32_t magic = kFrameMagic;
  std::uint16_t version = kFrameVersion;
  std::uint16_t flags = 0;
  std::uint64_t frame_bytes = 0;
  std::uint32_t tensors = 0;
  std::uint32_t metadata_bytes = 0;
  std::uint64_t directory_bytes = 0;     // entries; the metadata follows
  std::uint64_t directory_checksum = 0;  // of entries and metadata
  std::uint64_t zero[2] = {};
  std::uint64_t head_checksum = 0;  // of all before it
};
static_assert(sizeof(FrameHead) == 64);

/// Followed by u64 shape[dimensions], and the name, filled up with zeros to a multiple of 8.
struct EntryHead {
  std::uint8_t dtype = 0;
  std::uint8_t codec = 0;
  std::uint8_t device_kind = 0;
  std::uint8_t flags = 0;
  std::uint16_t device_index = 0;
  std::uint16_t dimensions = 0;
  std::uint32_t name_bytes = 0;
  std::uint32_t zero = 0;
  std::uint64_t offset = 0;  // from the frame's beginning, a multiple of 64
  std::uint64_t stored_bytes = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t checksum = 0;  // of the stored bytes
};
static_assert(sizeof(EntryHead) == 48);

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

/// Reads, builds nothing.
bool is_json_object(std::string_view text);

}  // namespace sinew
