#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include <sinew/error.hpp>
#include "codec/benefit.hpp"
#include "codec/engine.hpp"
#include "codec/packed.hpp"
#include "kernel/large_buffer.hpp"
#include "kernel/shuffle.hpp"

namespace sinew {
namespace {

constexpr std::size_t kSampleBytes = 4096;

std::uint64_t steady_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

void check(const LosslessOptions& options) {
  const auto refuse = [](const std::string& why) { throw Error(Errc::invalid_argument, why); };
  const auto [least, most] = levels(options.codec);
  if (options.level < least || options.level > most)
    refuse(fmt::format("level {} of {}; it has {} to {}", options.level, name(options.codec), least,
                       most));
  if (options.shuffle < 1 || options.shuffle > 255)
    refuse(fmt::format("shuffle of {} bytes; elements have 1 to 255", options.shuffle));
  if (options.block_bytes < 64 || options.block_bytes > kLongestBlock)
    refuse(
        fmt::format("blocks of {} bytes; they have 64 to {}", options.block_bytes, kLongestBlock));
  if (!(options.link_bytes_per_second >= 0))
    refuse(fmt::format("a link of {} bytes/s; give a rate, or 0 to compress whatever gets shorter",
                       options.link_bytes_per_second));
}

}  // namespace

struct LosslessEncoder::Impl {
  LosslessOptions options;
  NowNs now_ns;
  std::unique_ptr<Engine> engine;
  Benefit benefit;
  LosslessReport report;
  std::vector<std::byte> head;  // with the words of all blocks
  LargeBuffer<std::byte> room;  // compressed blocks, one after the other
  std::size_t used = 0;
  LargeBuffer<std::byte> shuffled;
  std::byte sample[kSampleBytes], sample_again[kSampleBytes];
  std::vector<std::span<const std::byte>> pieces;

  Impl(const LosslessOptions& o, NowNs now)
      : options(o), now_ns(now ? now : steady_ns), benefit(o.link_bytes_per_second) {
    check(options);
    if (options.codec != Codec::none) engine = make_engine(options.codec, options.level);
  }

  // Blocks of the frame format are all the data, up to what one may be.
  [[nodiscard]] std::size_t block_bytes() const {
    return options.codec == Codec::lz4_frame ? kLongestBlock : options.block_bytes;
  }

  void begin(std::span<const std::byte> data) {
    const auto blocks = (data.size() + block_bytes() - 1) / block_bytes();
    report = {.raw_bytes = data.size(), .blocks = blocks};
    const PackedHead packed{.codec = options.codec,
                            .shuffle = static_cast<std::uint8_t>(options.shuffle),
                            .block_bytes = static_cast<std::uint32_t>(block_bytes()),
                            .raw_bytes = data.size()};
    head.resize(sizeof packed + blocks * sizeof(std::uint32_t));
    std::memcpy(head.data(), &packed, sizeof packed);
    room.reserve(data.size());  // never more: what does not get shorter is left as it is
    used = 0;
    pieces.assign(1, head);
  }

  void put(std::size_t number, std::uint32_t word, std::span<const std::byte> piece) {
    std::memcpy(head.data() + sizeof(PackedHead) + number * sizeof word, &word, sizeof word);
    auto& last = pieces.back();
    if (pieces.size() > 1 && last.data() + last.size() == piece.data())
      last = {last.data(), last.size() + piece.size()};
    else
      pieces.push_back(piece);
  }

  void encode_block(std::size_t number, std::span<const std::byte> block) {
    const bool tries = engine && report.raw_bytes >= options.min_bytes && is_worth_it(block);
    const auto bytes = tries ? compress(block) : 0;
    if (bytes == 0)
      return put(number, static_cast<std::uint32_t>(block.size()) | kPlainBlock, block);
    ++report.compressed_blocks;
    put(number, static_cast<std::uint32_t>(bytes), {room.data() + used, bytes});
    used += bytes;
  }

  bool is_worth_it(std::span<const std::byte> block) {
    switch (benefit.next()) {
      case Benefit::Advice::leave:
        return false;
      case Benefit::Advice::compress:
        return true;
      case Benefit::Advice::sample:
        break;
    }
    if (block.size() < 2 * kSampleBytes) return true;  // as good as a sample
    return try_sample(block.subspan(block.size() / 2 / kSampleBytes * kSampleBytes, kSampleBytes));
  }

  bool try_sample(std::span<const std::byte> part) {
    Benefit::Trial trial{.raw_bytes = part.size(), .packed_bytes = part.size()};
    const auto begin = now_ns();
    const auto bytes = engine->compress(prepared(part), {sample, part.size() - 1});
    const auto middle = now_ns();
    if (bytes > 0) {
      trial.packed_bytes = bytes;
      engine->decompress({sample, bytes}, {sample_again, part.size()});
    }
    trial.encode_ns = middle - begin;
    trial.decode_ns = now_ns() - middle;
    report.tried_bytes += part.size();
    return benefit.sampled(trial);
  }

  // Shorter than the block, or 0.
  std::size_t compress(std::span<const std::byte> block) {
    const auto begin = now_ns();
    const auto bytes = engine->compress(prepared(block), {room.data() + used, block.size() - 1});
    report.tried_bytes += block.size();
    benefit.compressed({.raw_bytes = block.size(),
                        .packed_bytes = bytes == 0 ? block.size() : bytes,
                        .encode_ns = now_ns() - begin});
    return bytes;
  }

  std::span<const std::byte> prepared(std::span<const std::byte> block) {
    if (options.shuffle == 1) return block;
    shuffled.reserve(block.size());
    const std::span<std::byte> to(shuffled.data(), block.size());
    shuffle_bytes(block, options.shuffle, to);
    return to;
  }
};

LosslessEncoder::LosslessEncoder(const LosslessOptions& options, NowNs now_ns)
    : impl_(std::make_unique<Impl>(options, now_ns)) {}
LosslessEncoder::LosslessEncoder(LosslessEncoder&&) noexcept = default;
LosslessEncoder& LosslessEncoder::operator=(LosslessEncoder&&) noexcept = default;
LosslessEncoder::~LosslessEncoder() = default;

std::span<const std::span<const std::byte>> LosslessEncoder::encode(
    std::span<const std::byte> data) {
  auto& impl = *impl_;
  impl.begin(data);
  std::size_t number = 0;
  for (auto rest = data; !rest.empty();) {
    const auto block = rest.first(std::min(rest.size(), impl.block_bytes()));
    impl.encode_block(number++, block);
    rest = rest.subspan(block.size());
  }
  for (const auto piece : impl.pieces) impl.report.packed_bytes += piece.size();
  return impl.pieces;
}

const LosslessReport& LosslessEncoder::report() const noexcept { return impl_->report; }

}  // namespace sinew
