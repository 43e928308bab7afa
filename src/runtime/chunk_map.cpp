#include "runtime/chunk_map.hpp"

#include <algorithm>

namespace sinew {

void append_part(ChunkMap& map, std::size_t elements, std::uint32_t chunks,
                 std::size_t element_bytes) {
  constexpr std::size_t kLine = 64;
  auto each = (elements + chunks - 1) / std::max<std::size_t>(1, chunks);
  const auto line_elements = kLine / element_bytes;
  if (elements >= line_elements * chunks)
    each = (each + line_elements - 1) / line_elements * line_elements;
  const auto begin = map.offsets.back();
  for (std::uint32_t chunk = 1; chunk <= chunks; ++chunk)
    map.offsets.push_back(begin + std::min(elements, chunk * each) * element_bytes);
}

ChunkMap map_parts(std::span<const std::size_t> parts, std::uint32_t chunks_each,
                   std::size_t element_bytes) {
  ChunkMap map;
  map.offsets.reserve(parts.size() * chunks_each + 1);
  for (const auto elements : parts) append_part(map, elements, chunks_each, element_bytes);
  return map;
}

}  // namespace sinew
