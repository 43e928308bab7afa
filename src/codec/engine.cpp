#include "codec/engine.hpp"

#include <lz4.h>
#include <lz4frame.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <new>
#include <vector>

#include <sinew/error.hpp>

namespace sinew {
namespace {

const char* chars(std::span<const std::byte> bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}
char* chars(std::span<std::byte> bytes) { return reinterpret_cast<char*>(bytes.data()); }

class Lz4 final : public Engine {
 public:
  explicit Lz4(int acceleration) : acceleration_(acceleration) {}
  std::size_t compress(std::span<const std::byte> from, std::span<std::byte> to) override {
    if (from.size() > LZ4_MAX_INPUT_SIZE) return 0;
    const auto room = static_cast<int>(std::min<std::size_t>(to.size(), LZ4_MAX_INPUT_SIZE));
    return static_cast<std::size_t>(LZ4_compress_fast(
        chars(from), chars(to), static_cast<int>(from.size()), room, acceleration_));
  }
  bool decompress(std::span<const std::byte> from, std::span<std::byte> to) override {
    if (from.size() > LZ4_MAX_INPUT_SIZE || to.size() > LZ4_MAX_INPUT_SIZE) return false;
    const int got = LZ4_decompress_safe(chars(from), chars(to), static_cast<int>(from.size()),
                                        static_cast<int>(to.size()));
    return got >= 0 && static_cast<std::size_t>(got) == to.size();
  }

 private:
  int acceleration_;
};

// The frame format of the lz4 tools, with its checksum.
class Lz4Frame final : public Engine {
 public:
  explicit Lz4Frame(int level) {
    preferences_.compressionLevel = level;
    preferences_.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
    LZ4F_dctx* context = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) != 0U)
      throw std::bad_alloc();
    context_.reset(context);
  }
  std::size_t compress(std::span<const std::byte> from, std::span<std::byte> to) override {
    auto preferences = preferences_;
    preferences.frameInfo.contentSize = from.size();
    // It wants room for the worst case before it begins.
    const auto most = LZ4F_compressFrameBound(from.size(), &preferences);
    if (worst_.size() < most) worst_.resize(most);
    const auto bytes =
        LZ4F_compressFrame(worst_.data(), worst_.size(), from.data(), from.size(), &preferences);
    if (LZ4F_isError(bytes) != 0U || bytes > to.size()) return 0;
    std::copy_n(worst_.data(), bytes, to.data());
    return bytes;
  }
  bool decompress(std::span<const std::byte> from, std::span<std::byte> to) override {
    LZ4F_resetDecompressionContext(context_.get());
    while (true) {
      auto written = to.size(), read = from.size();
      const auto more =
          LZ4F_decompress(context_.get(), to.data(), &written, from.data(), &read, nullptr);
      if (LZ4F_isError(more) != 0U) return false;
      to = to.subspan(written);
      from = from.subspan(read);
      if (more == 0) return to.empty() && from.empty();
      if (written == 0 && read == 0) return false;  // cut off, or no room for what comes
    }
  }

 private:
  struct Free {
    void operator()(LZ4F_dctx* context) const noexcept { LZ4F_freeDecompressionContext(context); }
  };
  LZ4F_preferences_t preferences_ = LZ4F_INIT_PREFERENCES;
  std::unique_ptr<LZ4F_dctx, Free> context_;
  std::vector<std::byte> worst_;
};

class Zstd final : public Engine {
 public:
  explicit Zstd(int level)
      : level_(level), encoder_(ZSTD_createCCtx()), decoder_(ZSTD_createDCtx()) {
    if (encoder_ == nullptr || decoder_ == nullptr) throw std::bad_alloc();
  }
  std::size_t compress(std::span<const std::byte> from, std::span<std::byte> to) override {
    const auto bytes =
        ZSTD_compressCCtx(encoder_.get(), to.data(), to.size(), from.data(), from.size(), level_);
    return ZSTD_isError(bytes) != 0U ? 0 : bytes;
  }
  bool decompress(std::span<const std::byte> from, std::span<std::byte> to) override {
    const auto bytes =
        ZSTD_decompressDCtx(decoder_.get(), to.data(), to.size(), from.data(), from.size());
    return ZSTD_isError(bytes) == 0U && bytes == to.size();
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
  };
  int level_;
  std::unique_ptr<ZSTD_CCtx, Free> encoder_;
  std::unique_ptr<ZSTD_DCtx, Free> decoder_;
};

class Zlib final : public Engine {
 public:
  explicit Zlib(int level) : level_(level) {}
  std::size_t compress(std::span<const std::byte> from, std::span<std::byte> to) override {
    auto bytes = static_cast<uLongf>(to.size());
    const auto status = compress2(reinterpret_cast<Bytef*>(to.data()), &bytes,
                                  reinterpret_cast<const Bytef*>(from.data()), from.size(), level_);
    return status == Z_OK ? bytes : 0;
  }
  bool decompress(std::span<const std::byte> from, std::span<std::byte> to) override {
    auto written = static_cast<uLongf>(to.size());
    auto read = static_cast<uLong>(from.size());
    const auto status = uncompress2(reinterpret_cast<Bytef*>(to.data()), &written,
                                    reinterpret_cast<const Bytef*>(from.data()), &read);
    return status == Z_OK && written == to.size() && read == from.size();
  }

 private:
  int level_;
};

}  // namespace

LevelRange levels(Codec codec) noexcept {
  switch (codec) {
    case Codec::none:
      return {-65537, 65537};  // whatever: nobody asks it
    case Codec::lz4:
      return {1, 65537};
    case Codec::lz4_frame:
      return {0, 12};
    case Codec::zstd:
      return {-7, 19};
    case Codec::zlib:
      break;
  }
  return {1, 9};
}

std::unique_ptr<Engine> make_engine(Codec codec, int level) {
  switch (codec) {
    case Codec::none:
      break;
    case Codec::lz4:
      return std::make_unique<Lz4>(level);
    case Codec::lz4_frame:
      return std::make_unique<Lz4Frame>(level);
    case Codec::zstd:
      return std::make_unique<Zstd>(level);
    case Codec::zlib:
      return std::make_unique<Zlib>(level);
  }
  throw Error(Errc::invalid_argument, "codec 'none' compresses nothing");
}

}  // namespace sinew
