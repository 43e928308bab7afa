// Copies: plain, and with non-temporal stores for data that will not be read soon.
#pragma once

#include <cstddef>

namespace sinew {

/// Buffers do not overlap, or are the same (then nothing happens). `streaming` asks for
/// non-temporal stores; it is a hint, ignored for short or awkward copies.
void copy_bytes(std::byte* dst, const std::byte* src, std::size_t bytes, bool streaming) noexcept;

}  // namespace sinew
