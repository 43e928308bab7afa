#include "train/dataset.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "train/espeak.hpp"
#include "train/idx.hpp"
#include "train/prefetch.hpp"
#include "train/speech_folder.hpp"
#include "train/synthetic.hpp"
#include "train/tones.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;

constexpr DataInfo kSources[] = {
    {"fashion",
     "Fashion-MNIST, of Debian's package dataset-fashion-mnist: 60,000 images",
     {1, 28, 28}},
    {"idx:DIR", "images of your own: train- and t10k-, as MNIST names its files"},
    {"synthetic", "ten blurred patterns with noise, 28 x 28, made from the seed", {1, 28, 28}},
    {"rows", "1,000 rows of ten normal numbers, labelled by their sum", {10}},
    {"tones", "spelled words as patterns of frequencies, made from the seed", {1, 161, -1}},
    {"speech", "948 spelled words and commands, spoken by espeak-ng once and kept", {1, 161, -1}},
    {"speech:DIR", "recordings of your own with their words, laid out as AN4 is", {1, 161, -1}},
};
constexpr std::size_t kSpoken = 948;  // as many as AN4 has
constexpr const char* kFashion = "/usr/share/datasets/fashion-mnist";

Data open_images(const fs::path& folder, std::size_t most) {
  return {open_idx(folder, "train", most), open_idx(folder, "t10k", most == 0 ? 0 : most / 4 + 1)};
}

Data open_fashion(std::size_t most) {
  if (!fs::exists(kFashion))
    throw Error(Errc::system, fmt::format("Fashion-MNIST is not there ({}): apt-get install "
                                          "dataset-fashion-mnist, or use --data synthetic",
                                          kFashion));
  return open_images(kFashion, most);
}

Data open_spoken(std::size_t most, const DataOptions& options) {
  const fs::path cache =
      options.cache.empty() ? fs::temp_directory_path() : fs::path(options.cache);
  const auto folder = cache / fmt::format("speech-{}", options.seed);
  make_speech(folder, most, most / 4 + 1, options.seed, options.say);
  return open_speech(folder, most, options.seed);
}

// Where a sample takes long enough to make that a thread of its own pays.
Data ahead(Data data) {
  return {std::make_unique<Prefetched>(std::move(data.train)), std::move(data.test)};
}

// ":N" at the end, if there is one.
std::size_t take_limit(std::string_view& name) {
  const auto colon = name.rfind(':');
  if (colon == std::string_view::npos) return 0;
  const auto digits = name.substr(colon + 1);
  std::size_t limit = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), limit);
  if (status != std::errc{} || end != digits.data() + digits.size() || limit == 0) return 0;
  name = name.substr(0, colon);
  return limit;
}

}  // namespace

std::span<const DataInfo> data_sources() noexcept { return kSources; }

std::vector<std::int64_t> sample_shape(std::string_view name) {
  (void)take_limit(name);
  std::vector<std::int64_t> shape;
  for (const auto& source : kSources) {
    const auto kind = source.name.substr(0, source.name.find(':'));
    if (kind != name.substr(0, name.find(':'))) continue;
    for (const auto extent : source.sample)
      if (extent != 0) shape.push_back(extent);
    break;
  }
  return shape;
}

Data open_data(std::string_view name, const DataOptions& options) {
  const auto seed = options.seed;
  auto kind = name;
  const auto most = take_limit(kind);
  if (kind == "fashion") return open_fashion(most);
  if (kind.starts_with("idx:")) return open_images(kind.substr(4), most);
  if (kind == "synthetic") return ahead(make_patterns(most == 0 ? 8192 : most, seed));
  if (kind == "rows") return make_rows(most == 0 ? 1000 : most, seed);
  if (kind == "tones") return ahead(make_tones(most == 0 ? 1000 : most, seed));
  if (kind == "speech") return ahead(open_spoken(most == 0 ? kSpoken : most, options));
  if (kind.starts_with("speech:")) return ahead(open_speech(kind.substr(7), most, seed));
  std::vector<std::string_view> names;
  for (const auto& source : kSources) names.push_back(source.name);
  throw Error(Errc::invalid_argument, unknown("data", name, names));
}

}  // namespace sinew
