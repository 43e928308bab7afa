#include "train/idx.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sinew/error.hpp>

namespace sinew {
namespace {

namespace fs = std::filesystem;

// Of the pixels of Fashion-MNIST, as shares of white; close enough for images like them.
constexpr float kMean = 0.2860F, kDeviation = 0.3530F;
constexpr std::uint8_t kUnsignedBytes = 0x08;
constexpr std::size_t kMostDimensions = 8;

Error unreadable(const fs::path& path, std::string_view why) {
  return {Errc::system, fmt::format("cannot read '{}': {}", path.string(), why)};
}
Error malformed(const fs::path& path, std::string_view why) {
  return {Errc::invalid_argument,
          fmt::format("'{}' is no IDX file of bytes: {}", path.string(), why)};
}

/// A file that zlib reads whether or not it is compressed.
class Source {
 public:
  explicit Source(const fs::path& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (file_ == nullptr) throw unreadable(path, std::strerror(errno));
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { gzclose(file_); }

  /// How many bytes there were.
  std::size_t read(std::uint8_t* into, std::size_t bytes) {
    constexpr std::size_t kAtOnce = std::size_t{1} << 30;
    std::size_t done = 0;
    while (done < bytes) {
      const auto got =
          gzread(file_, into + done, static_cast<unsigned>(std::min(bytes - done, kAtOnce)));
      if (got < 0) throw unreadable(path_, message());
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  std::uint32_t big_endian() {
    std::uint8_t bytes[4];
    if (read(bytes, 4) != 4) throw malformed(path_, "it ends within its header");
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
           std::uint32_t{bytes[2]} << 8 | bytes[3];
  }

 private:
  std::string message() {
    int code = 0;
    return gzerror(file_, &code);
  }
  fs::path path_;
  gzFile file_;
};

class IdxImages final : public Dataset {
 public:
  IdxImages(IdxFile images, IdxFile labels, std::size_t samples)
      : images_(std::move(images)),
        labels_(std::move(labels)),
        samples_(samples),
        shape_{1, images_.shape[1], images_.shape[2]},
        classes_(1 + *std::max_element(labels_.values.begin(), labels_.values.end())) {
    for (std::size_t value = 0; value < 256; ++value)
      scaled_[value] = (static_cast<float>(value) / 255.0F - kMean) / kDeviation;
  }

  [[nodiscard]] std::size_t samples() const noexcept override { return samples_; }
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept override { return shape_; }
  [[nodiscard]] int classes() const noexcept override { return classes_; }

  void fill(std::span<const std::uint32_t> which, Batch& into) const override {
    const auto pixels = static_cast<std::size_t>(shape_[1] * shape_[2]);
    into.shape = {static_cast<std::int64_t>(which.size()), 1, shape_[1], shape_[2]};
    into.inputs.resize(which.size() * pixels);
    into.labels.resize(which.size());
    float* to = into.inputs.data();
    for (std::size_t i = 0; i < which.size(); ++i) {
      const auto* from = images_.values.data() + which[i] * pixels;
      for (std::size_t pixel = 0; pixel < pixels; ++pixel) *to++ = scaled_[from[pixel]];
      into.labels[i] = labels_.values[which[i]];
    }
  }

 private:
  IdxFile images_, labels_;
  std::size_t samples_;
  std::int64_t shape_[3];
  int classes_;
  float scaled_[256];
};

fs::path plain_or_packed(const fs::path& folder, const std::string& name) {
  const auto packed = folder / (name + ".gz");
  return fs::exists(packed) ? packed : folder / name;
}

}  // namespace

IdxFile read_idx(const fs::path& path) {
  Source source(path);
  const auto magic = source.big_endian();
  const auto dimensions = magic & 0xFFU;
  if (magic >> 16 != 0 || (magic >> 8 & 0xFFU) != kUnsignedBytes)
    throw malformed(path, fmt::format("it begins with {:#010x}", magic));
  if (dimensions == 0 || dimensions > kMostDimensions)
    throw malformed(path, fmt::format("it has {} dimensions", dimensions));
  IdxFile file;
  std::uint64_t expected = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    file.shape.push_back(source.big_endian());
    expected *= static_cast<std::uint64_t>(file.shape.back());
    if (expected > std::uint64_t{1} << 40) throw malformed(path, "it says to be over 1 TiB");
  }
  // Room is made as data comes, and not because a header asks for it.
  constexpr std::size_t kPiece = std::size_t{1} << 24;
  while (file.values.size() < expected) {
    const auto had = file.values.size();
    file.values.resize(std::min<std::size_t>(expected, had + kPiece));
    const auto got = source.read(file.values.data() + had, file.values.size() - had);
    if (had + got < file.values.size())
      throw malformed(path, fmt::format("it says {} bytes but has {}", expected, had + got));
  }
  std::uint8_t more = 0;
  if (source.read(&more, 1) != 0)
    throw malformed(path, fmt::format("it says {} bytes but has more", expected));
  return file;
}

std::unique_ptr<Dataset> open_idx(const fs::path& folder, std::string_view prefix,
                                  std::size_t most) {
  const auto image_path = plain_or_packed(folder, fmt::format("{}-images-idx3-ubyte", prefix));
  const auto label_path = plain_or_packed(folder, fmt::format("{}-labels-idx1-ubyte", prefix));
  auto images = read_idx(image_path), labels = read_idx(label_path);
  if (images.shape.size() != 3)
    throw malformed(image_path,
                    fmt::format("images have 3 dimensions, not {}", images.shape.size()));
  if (labels.shape.size() != 1 || labels.shape[0] != images.shape[0])
    throw malformed(label_path,
                    fmt::format("{} labels for {} images", labels.values.size(), images.shape[0]));
  if (images.values.empty()) throw malformed(image_path, "it has no images");
  const auto all = static_cast<std::size_t>(images.shape[0]);
  return std::make_unique<IdxImages>(std::move(images), std::move(labels),
                                     most == 0 ? all : std::min(all, most));
}

}  // namespace sinew
