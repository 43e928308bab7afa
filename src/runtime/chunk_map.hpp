// Where the chunks of a buffer lie, in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sinew {

/// offsets[i] is where chunk i begins; the last entry is the end of the buffer.
struct ChunkMap {
  std::vector<std::uint64_t> offsets{0};
  [[nodiscard]] std::uint64_t bytes(std::uint32_t first, std::uint32_t count = 1) const {
    return offsets[first + count] - offsets[first];
  }
  [[nodiscard]] std::uint64_t total() const { return offsets.back(); }
  friend bool operator==(const ChunkMap&, const ChunkMap&) = default;
};

/// Appends one part of `elements`, cut into `chunks` nearly equal chunks. Cuts fall on cache lines
/// where the part is long enough.
void append_part(ChunkMap& map, std::size_t elements, std::uint32_t chunks,
                 std::size_t element_bytes);

/// A buffer of equal or differing parts, each cut into `chunks_each`.
ChunkMap map_parts(std::span<const std::size_t> parts, std::uint32_t chunks_each,
                   std::size_t element_bytes);

}  // namespace sinew
