#include "compress/block_allreduce.hpp"

#include <algorithm>

#include "compress/regions.hpp"

namespace sinew {
namespace {

std::span<std::uint8_t> as_u8(const LargeBuffer<std::byte>& buffer, std::size_t bytes) {
  return {reinterpret_cast<std::uint8_t*>(buffer.data()), bytes};
}

}  // namespace

Blocks fixed_blocks(std::size_t elements, std::size_t length, int ranks) {
  Blocks blocks;
  for (std::size_t begin = 0; begin < elements; begin += length) blocks.bounds.push_back(begin);
  const auto regions = equal_regions(ranks, blocks.bounds.size());
  blocks.regions.assign(regions.begin(), regions.end());
  blocks.bounds.push_back(elements);
  return blocks;
}

Blocks tensor_blocks(std::span<const TensorSpec> layout, bool by_column, int ranks) {
  Blocks blocks;
  std::size_t end = 0;
  for (const auto& tensor : layout) {
    const auto elements = tensor.elements();
    const auto columns = by_column && tensor.shape.size() > 1 ? tensor.shape.front() : 1;
    for (std::size_t i = 0; i < columns; ++i) blocks.bounds.push_back(end + elements / columns * i);
    end += elements;
  }
  const auto borders = equal_regions(ranks, end);
  blocks.bounds.insert(blocks.bounds.end(), borders.begin(), borders.end());
  std::sort(blocks.bounds.begin(), blocks.bounds.end());
  blocks.bounds.erase(std::unique(blocks.bounds.begin(), blocks.bounds.end()), blocks.bounds.end());
  for (const auto border : borders)
    blocks.regions.push_back(static_cast<std::size_t>(
        std::lower_bound(blocks.bounds.begin(), blocks.bounds.end(), border) -
        blocks.bounds.begin()));
  return blocks;
}

BlockAllreduce::BlockAllreduce(Blocks blocks, const BlockCodec& codec, int rank)
    : blocks_(std::move(blocks)),
      codec_(codec),
      me_(static_cast<std::size_t>(rank)),
      ranks_(blocks_.regions.size() - 1) {
  std::size_t longest = 0;
  offsets_.push_back(0);
  for (std::size_t b = 0; b + 1 < blocks_.bounds.size(); ++b) {
    offsets_.push_back(offsets_.back() + codec_.bytes(length_of(b)));
    longest = std::max(longest, length_of(b));
  }
  for (std::size_t r = 0; r < ranks_; ++r)
    sizes_.push_back(offsets_[blocks_.regions[r + 1]] - offsets_[blocks_.regions[r]]);
  my_sizes_.assign(ranks_, sizes_[me_]);
  outgoing_ = LargeBuffer<std::byte>(offsets_.back());
  incoming_ = LargeBuffer<std::byte>(sizes_[me_] * ranks_);
  sums_written_ = LargeBuffer<std::byte>(sizes_[me_]);
  all_ = LargeBuffer<std::byte>(offsets_.back());
  sums_ = LargeBuffer<float>(begin_of(blocks_.regions[me_ + 1]) - begin_of(blocks_.regions[me_]));
  block_.resize(longest);
}

bool BlockAllreduce::run(Exchange& x, std::span<const float> input, std::span<float> kept,
                         std::uint64_t key) {
  {
    const auto timed = x.time(Part::encode);
    encode(input, key);
  }
  x.alltoallv("split", std::span<const std::uint8_t>(as_u8(outgoing_, offsets_.back())), sizes_,
              as_u8(incoming_, sizes_[me_] * ranks_), my_sizes_, offsets_.back());
  {
    const auto timed = x.time(Part::reduce);
    add_up(~key);
  }
  x.allgatherv("gather", std::span<const std::uint8_t>(as_u8(sums_written_, sizes_[me_])),
               as_u8(all_, offsets_.back()), sizes_);
  const auto timed = x.time(Part::decode);
  for (std::size_t b = 0; b + 1 < blocks_.bounds.size(); ++b)
    if (!codec_.finite(all_.data() + offsets_[b])) return false;
  decode(x, kept);
  x.report.items = x.report.local_items = x.gradient.size();
  return true;
}

void BlockAllreduce::encode(std::span<const float> input, std::uint64_t key) {
  for (std::size_t b = 0; b + 1 < blocks_.bounds.size(); ++b)
    codec_.encode(input.subspan(begin_of(b), length_of(b)), key, begin_of(b),
                  outgoing_.data() + offsets_[b]);
}

// In rank order. What is not finite stays so: the sum says it to everybody.
void BlockAllreduce::add_up(std::uint64_t key) {
  const auto first = blocks_.regions[me_], end = blocks_.regions[me_ + 1];
  for (auto b = first; b < end; ++b) {
    const auto sum = sums_.all().subspan(begin_of(b) - begin_of(first), length_of(b));
    const auto offset = offsets_[b] - offsets_[first];
    codec_.decode(incoming_.data() + offset, sum);
    for (std::size_t rank = 1; rank < ranks_; ++rank) {
      const auto part = std::span(block_).first(sum.size());
      codec_.decode(incoming_.data() + rank * sizes_[me_] + offset, part);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    codec_.encode(sum, key, begin_of(b), sums_written_.data() + offset);
  }
}

void BlockAllreduce::decode(Exchange& x, std::span<float> kept) {
  const float divisor = x.divisor();
  const auto first = blocks_.regions[me_], end = blocks_.regions[me_ + 1];
  for (std::size_t b = 0; b + 1 < blocks_.bounds.size(); ++b) {
    const auto part = std::span(block_).first(length_of(b));
    const auto sum = x.gradient.subspan(begin_of(b), part.size());
    if (!kept.empty()) {
      const auto rest = kept.subspan(begin_of(b), part.size());
      codec_.decode(outgoing_.data() + offsets_[b], part);
      for (std::size_t i = 0; i < part.size(); ++i) rest[i] -= part[i];
      codec_.decode(all_.data() + offsets_[b], sum);
      if (b >= first && b < end) {
        const float* const exact = sums_.data() + (begin_of(b) - begin_of(first));
        for (std::size_t i = 0; i < part.size(); ++i) rest[i] += exact[i] - sum[i];
      }
    } else {
      codec_.decode(all_.data() + offsets_[b], sum);
    }
    if (divisor != 1)
      for (float& value : sum) value /= divisor;
  }
}

}  // namespace sinew
