// Allreduce of numbers written in fewer bits, block by block. Every rank owns a region: it adds up
// what all ranks sent it of that region, and writes the sum in fewer bits again for everybody. Both
// roundings can be kept: the first by who sent, the second by the owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sinew/scheme.hpp>
#include "kernel/large_buffer.hpp"

namespace sinew {

/// How a block of numbers is written. A block that has a NaN or an infinity says so.
class BlockCodec {
 public:
  BlockCodec() = default;
  BlockCodec(const BlockCodec&) = delete;
  BlockCodec& operator=(const BlockCodec&) = delete;
  virtual ~BlockCodec() = default;
  /// Of a block of so many elements: known to everybody, so that no lengths travel.
  [[nodiscard]] virtual std::size_t bytes(std::size_t elements) const noexcept = 0;
  /// `key`, `first`: for codecs that draw; `first` is the block's first element in the gradient.
  virtual void encode(std::span<const float> block, std::uint64_t key, std::uint64_t first,
                      std::byte* to) const noexcept = 0;
  virtual void decode(const std::byte* from, std::span<float> block) const noexcept = 0;
  [[nodiscard]] virtual bool finite(const std::byte* from) const noexcept = 0;
};

/// Which elements make a block, and which blocks a region.
struct Blocks {
  std::vector<std::size_t> bounds;   // block b is [bounds[b], bounds[b + 1])
  std::vector<std::size_t> regions;  // region r begins with block regions[r]; the end comes last
};
/// Blocks of `length`, the last one shorter; regions of equally many.
Blocks fixed_blocks(std::size_t elements, std::size_t length, int ranks);
/// A block for each tensor, or for each column of it (the elements of one first index; a tensor of
/// one dimension is one column). Regions of equally many elements: a block at the border is cut.
Blocks tensor_blocks(std::span<const TensorSpec> layout, bool by_column, int ranks);

class BlockAllreduce {
 public:
  BlockAllreduce(Blocks blocks, const BlockCodec& codec, int rank);

  /// The sum or mean of `input` over ranks into x.gradient. `kept`: `input` itself, where what
  /// rounding took away stays; empty: it is forgotten. False: some rank has a NaN or an infinity,
  /// everybody knows, and nothing was touched. `key`: equal on no two ranks and in no two steps.
  bool run(Exchange& x, std::span<const float> input, std::span<float> kept, std::uint64_t key);

 private:
  [[nodiscard]] std::size_t begin_of(std::size_t block) const { return blocks_.bounds[block]; }
  [[nodiscard]] std::size_t length_of(std::size_t block) const {
    return blocks_.bounds[block + 1] - blocks_.bounds[block];
  }
  void encode(std::span<const float> input, std::uint64_t key);
  void add_up(std::uint64_t key);
  void decode(Exchange& x, std::span<float> kept);

  Blocks blocks_;
  const BlockCodec& codec_;
  std::size_t me_, ranks_;
  std::vector<std::size_t> offsets_;           // where each block lies among all written blocks
  std::vector<std::size_t> sizes_, my_sizes_;  // bytes: of each region, and of mine from each rank
  LargeBuffer<std::byte> outgoing_, incoming_, sums_written_, all_;
  LargeBuffer<float> sums_;  // of my region
  std::vector<float> block_;
};

}  // namespace sinew
