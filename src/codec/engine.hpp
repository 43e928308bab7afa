// One compressor of blocks, whichever library it is. Decoders are bounded by the room they get.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <sinew/lossless.hpp>

namespace sinew {

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;
  /// Bytes written to `to`; 0 where it does not fit.
  virtual std::size_t compress(std::span<const std::byte> from, std::span<std::byte> to) = 0;
  /// False unless `from` is whole and becomes exactly to.size() bytes.
  virtual bool decompress(std::span<const std::byte> from, std::span<std::byte> to) = 0;
};

struct LevelRange {
  int least = 0, most = 0;
};
LevelRange levels(Codec codec) noexcept;

/// Not for Codec::none. Decoders need no level.
std::unique_ptr<Engine> make_engine(Codec codec, int level = 1);

}  // namespace sinew
