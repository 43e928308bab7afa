// Where samples come from. docs/training.md lists the sources and how to name them.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/batch.hpp"

namespace sinew {

class Dataset {
 public:
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  virtual ~Dataset() = default;

  [[nodiscard]] virtual std::size_t samples() const noexcept = 0;
  /// Extents of one sample.
  [[nodiscard]] virtual std::span<const std::int64_t> shape() const noexcept = 0;
  [[nodiscard]] virtual int classes() const noexcept = 0;
  /// These samples, in this order; reuses what `into` holds.
  virtual void fill(std::span<const std::uint32_t> which, Batch& into) const = 0;
  /// These are likely to be asked for next: a chance to prepare them meanwhile.
  virtual void expect(std::span<const std::uint32_t> /*which*/) const {}
};

struct Data {
  std::unique_ptr<Dataset> train, test;
};

struct DataOptions {
  std::uint64_t seed = 1;
  std::string cache{};  // folder for what is made and takes a while; "": the temporary one
  std::function<void(std::string_view)> say{};  // told of what will take a while
};

/// One of data_sources(), each with ":N" to use the first N training samples only (and N / 4 of the
/// others). Throws Error{invalid_argument} for an unknown word, and Error{system} that names the
/// package to install where files are missing.
Data open_data(std::string_view name, const DataOptions& options);
inline Data open_data(std::string_view name, std::uint64_t seed) {
  return open_data(name, DataOptions{seed});
}

/// Extents of one sample of the data of this name, -1 where samples differ in it, as far as the
/// name alone tells; nothing: one has to open them.
std::vector<std::int64_t> sample_shape(std::string_view name);

/// What each part of open_data()'s names means, one line each.
struct DataInfo {
  std::string_view name;
  std::string_view summary;
  std::array<std::int64_t, 3> sample{};  // extents; 0: no more of them
};
std::span<const DataInfo> data_sources() noexcept;

}  // namespace sinew
