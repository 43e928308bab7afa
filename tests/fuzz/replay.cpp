// Runs a fuzz target without a fuzzer: over its corpus, and over what becomes of each file when
// bytes are changed, left out and doubled, in a way that is the same every time.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes mutate(Bytes bytes, std::mt19937& random) {
  const auto at = [&] { return static_cast<std::ptrdiff_t>(random() % (bytes.size() + 1)); };
  for (auto edits = 1 + random() % 4; edits > 0; --edits) {
    const auto place = bytes.begin() + at();
    switch (random() % 4) {
      case 0:
        bytes.insert(place, static_cast<std::uint8_t>(random()));
        break;
      case 1:
        bytes.erase(place, bytes.begin() + std::max(at(), place - bytes.begin()));
        break;
      case 2:
        bytes.insert(bytes.end(), bytes.begin(), bytes.begin() + at());
        break;
      default:
        if (place != bytes.end()) *place ^= static_cast<std::uint8_t>(1U << random() % 8);
    }
    bytes.resize(std::min<std::size_t>(bytes.size(), 4096));
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937 random(1);
  int files = 0, runs = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      const Bytes bytes{std::istreambuf_iterator<char>(file), {}};
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      for (int trial = 0; trial < 2000; ++trial, ++runs) {
        const auto changed = mutate(bytes, random);
        LLVMFuzzerTestOneInput(changed.data(), changed.size());
      }
      ++files;
    }
  std::printf("%d files, %d mutations\n", files, runs);
  return files > 0 ? 0 : 1;
}
