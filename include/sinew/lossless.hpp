// Lossless compression of bytes on their way over a link: block by block, and only where it saves
// time. docs/lossless.md has the form and figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sinew {

enum class Codec : std::uint8_t { none, lz4, lz4_frame, zstd, zlib };
inline constexpr Codec kCodecs[] = {Codec::none, Codec::lz4, Codec::lz4_frame, Codec::zstd,
                                    Codec::zlib};
std::string_view name(Codec codec) noexcept;
/// By name; an unknown one throws Error{invalid_argument} that suggests the nearest.
Codec parse_codec(std::string_view text);

struct LosslessOptions {
  Codec codec = Codec::lz4;
  /// lz4: acceleration, from 1 (smallest) to 65537 (fastest). lz4_frame: 0 to 12. zstd: -7 to 19.
  /// zlib: 1 to 9.
  int level = 1;
  std::uint32_t shuffle = 1;               // bytes of an element, up to 255; 1: no shuffle
  std::uint32_t block_bytes = 256U << 10;  // lz4_frame is always one block
  std::uint64_t min_bytes = 4096;          // shorter data is left as it is
  double link_bytes_per_second = 0;        // 0: compress whatever gets shorter
};

/// What an encoder did with the last data.
struct LosslessReport {
  std::uint64_t raw_bytes = 0;
  std::uint64_t packed_bytes = 0;  // with everything around it
  std::uint64_t blocks = 0;
  std::uint64_t compressed_blocks = 0;
  std::uint64_t tried_bytes = 0;  // that went through the compressor, in vain or not
  [[nodiscard]] double ratio() const noexcept {
    return packed_bytes == 0 ? 1
                             : static_cast<double>(raw_bytes) / static_cast<double>(packed_bytes);
  }
};

/// Remembers from data to data whether compressing pays. Used by one thread at a time.
class LosslessEncoder {
 public:
  using NowNs = std::uint64_t (*)();
  /// Throws Error{invalid_argument} on options out of range. `now_ns`: the clock that judges; the
  /// default is the steady one.
  explicit LosslessEncoder(const LosslessOptions& options, NowNs now_ns = nullptr);
  LosslessEncoder(LosslessEncoder&&) noexcept;
  LosslessEncoder& operator=(LosslessEncoder&&) noexcept;
  ~LosslessEncoder();

  /// The packed form, in pieces to be sent one after the other. What is left as it is points into
  /// `data`: nothing is copied. Valid until the next call.
  std::span<const std::span<const std::byte>> encode(std::span<const std::byte> data);
  [[nodiscard]] const LosslessReport& report() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// How many bytes `packed` says it unpacks to: somebody's word, to be compared with what is
/// expected before anything is allocated. Throws Error{invalid_argument} on what is no packed form.
std::uint64_t unpacked_bytes(std::span<const std::byte> packed);

/// The data itself where no block was compressed: it lies in `packed` as it was, and need not be
/// copied. Nothing where some block was; throws like unpack().
std::optional<std::span<const std::byte>> plain_view(std::span<const std::byte> packed);

/// Unpacks. Throws Error{invalid_argument} unless `packed` is whole and is exactly into.size()
/// bytes; never writes outside `into`, and needs at most as much memory besides.
void unpack(std::span<const std::byte> packed, std::span<std::byte> into);

}  // namespace sinew
