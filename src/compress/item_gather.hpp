// Sparse items of every rank to everybody, added up in rank order: how all schemes end whose ranks
// choose on their own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sinew/scheme.hpp>
#include "compress/items.hpp"
#include "compress/owner_sum.hpp"
#include "kernel/large_buffer.hpp"

namespace sinew {

class ItemGather {
 public:
  ItemGather(std::size_t elements, int size)
      : elements_(elements), sizes_(static_cast<std::size_t>(size)) {}

  /// Items: ascending indices and their values, none zero. The sum or mean over ranks goes into
  /// x.gradient, and the counts into the report. False: some rank is not `finite`, everybody knows
  /// it, and the gradient is untouched.
  bool run(Exchange& x, std::span<const std::uint32_t> indices, std::span<const float> values,
           bool finite);

 private:
  void add_up(Exchange& x, std::span<const std::uint8_t> mine);

  std::size_t elements_;
  OwnerSum owner_;
  LargeBuffer<std::byte> mine_, all_;
  std::vector<std::uint64_t> words_;
  std::vector<std::size_t> sizes_;
  std::vector<ItemReader> lists_;
};

}  // namespace sinew
