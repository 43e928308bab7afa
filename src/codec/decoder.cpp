#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "codec/engine.hpp"
#include "codec/packed.hpp"
#include "kernel/shuffle.hpp"

namespace sinew {
namespace {

constexpr std::string_view kNames[] = {"none", "lz4", "lz4_frame", "zstd", "zlib"};

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::invalid_argument, "packed bytes: " + why);
}

PackedHead read_head(std::span<const std::byte> packed) {
  PackedHead head;
  if (packed.size() < sizeof head)
    refuse(fmt::format("{} of {} bytes of the head", packed.size(), sizeof head));
  std::memcpy(&head, packed.data(), sizeof head);
  if (head.magic != kPackedMagic) refuse("these begin otherwise");
  if (head.version != kPackedVersion)
    throw Error(Errc::unsupported,
                fmt::format("packed bytes of version {}; this program reads {}: update it",
                            head.version, kPackedVersion));
  if (static_cast<std::size_t>(head.codec) >= std::size(kCodecs))
    refuse(fmt::format("codec {} is not known", static_cast<int>(head.codec)));
  if (head.zero != 0 || head.zero_too != 0) refuse("what must be zero is not");
  if (head.shuffle == 0 || head.block_bytes == 0 || head.block_bytes > kLongestBlock)
    refuse(fmt::format("blocks of {} bytes, shuffled by {}", head.block_bytes, head.shuffle));
  return head;
}

// Reads blocks one by one, none of them further than the packed bytes reach.
class Blocks {
 public:
  Blocks(const PackedHead& head, std::span<const std::byte> packed, std::size_t raw_bytes)
      : head_(head), words_(packed.subspan(sizeof head)) {
    const auto blocks = (raw_bytes + head.block_bytes - 1) / head.block_bytes;
    if (words_.size() / sizeof(std::uint32_t) < blocks)
      refuse(fmt::format("{} blocks are announced, {} bytes are there", blocks, words_.size()));
    rest_ = words_.subspan(blocks * sizeof(std::uint32_t));
  }

  void read_next(std::span<std::byte> into) {
    std::uint32_t word = 0;
    std::memcpy(&word, words_.data(), sizeof word);
    words_ = words_.subspan(sizeof word);
    const std::size_t bytes = word & ~kPlainBlock;
    if (bytes > rest_.size())
      refuse(fmt::format("a block of {} bytes, {} are left", bytes, rest_.size()));
    const auto block = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    if ((word & kPlainBlock) != 0)
      copy(block, into);
    else
      decompress(block, into);
  }

  void finish() const {
    if (!rest_.empty()) refuse(fmt::format("{} bytes after the last block", rest_.size()));
  }

 private:
  static void copy(std::span<const std::byte> block, std::span<std::byte> into) {
    if (block.size() != into.size())
      refuse(fmt::format("a plain block of {} bytes for {}", block.size(), into.size()));
    std::memcpy(into.data(), block.data(), block.size());
  }

  void decompress(std::span<const std::byte> block, std::span<std::byte> into) {
    if (head_.codec == Codec::none) refuse("a compressed block without a codec");
    if (!engine_) engine_ = make_engine(head_.codec);
    const bool shuffled = head_.shuffle > 1;
    if (shuffled) scratch_.resize(into.size());
    if (!engine_->decompress(block, shuffled ? std::span(scratch_) : into))
      refuse(fmt::format("{} could not make {} bytes of a block of {}", name(head_.codec),
                         into.size(), block.size()));
    if (shuffled) unshuffle_bytes(scratch_, head_.shuffle, into);
  }

  PackedHead head_;
  std::span<const std::byte> words_, rest_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::byte> scratch_;
};

}  // namespace

std::string_view name(Codec codec) noexcept { return kNames[static_cast<std::size_t>(codec)]; }

Codec parse_codec(std::string_view text) {
  for (const auto codec : kCodecs)
    if (name(codec) == text) return codec;
  throw Error(Errc::invalid_argument, unknown("codec", text, kNames));
}

std::uint64_t unpacked_bytes(std::span<const std::byte> packed) {
  return read_head(packed).raw_bytes;
}

std::optional<std::span<const std::byte>> plain_view(std::span<const std::byte> packed) {
  const auto head = read_head(packed);
  const auto words = packed.subspan(sizeof head);
  // Rounded up without a sum that could overflow: the length is anybody's word.
  const auto blocks =
      head.raw_bytes / head.block_bytes + (head.raw_bytes % head.block_bytes != 0 ? 1 : 0);
  if (words.size() / sizeof(std::uint32_t) < blocks)
    refuse(fmt::format("{} blocks are announced, {} bytes are there", blocks, words.size()));
  const auto data = words.subspan(blocks * sizeof(std::uint32_t));
  auto left = head.raw_bytes;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, words.data() + i * sizeof word, sizeof word);
    if ((word & kPlainBlock) == 0) return std::nullopt;
    const auto bytes = std::min<std::uint64_t>(left, head.block_bytes);
    if (word != (bytes | kPlainBlock)) refuse("a plain block has another length than its place");
    left -= bytes;
  }
  if (data.size() != head.raw_bytes)
    refuse(fmt::format("{} bytes of plain blocks, {} are there", head.raw_bytes, data.size()));
  return data;
}

void unpack(std::span<const std::byte> packed, std::span<std::byte> into) {
  const auto head = read_head(packed);
  if (head.raw_bytes != into.size())
    refuse(fmt::format("they are {} bytes unpacked; {} are expected", head.raw_bytes, into.size()));
  Blocks blocks(head, packed, into.size());
  while (!into.empty()) {
    const auto part = into.first(std::min<std::size_t>(into.size(), head.block_bytes));
    blocks.read_next(part);
    into = into.subspan(part.size());
  }
  blocks.finish();
}

}  // namespace sinew
