// IDX files, plain or gzipped: the form of MNIST and Fashion-MNIST.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "train/dataset.hpp"

namespace sinew {

struct IdxFile {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;  // row-major
};

/// Throws Error{system} when it cannot be read, and Error{invalid_argument} when it is no IDX file
/// of bytes, or is shorter or longer than it says.
IdxFile read_idx(const std::filesystem::path& path);

/// Images with one label each. `folder` holds PREFIX-images-idx3-ubyte and
/// PREFIX-labels-idx1-ubyte, each perhaps with .gz; `most`: the first so many, 0 for all.
std::unique_ptr<Dataset> open_idx(const std::filesystem::path& folder, std::string_view prefix,
                                  std::size_t most = 0);

}  // namespace sinew
