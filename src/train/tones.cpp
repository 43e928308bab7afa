#include "train/tones.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/counter_random.hpp"

namespace sinew {
namespace {

constexpr std::int64_t kBins = 161, kLetters = 28;  // label 0 is the blank of CTC
constexpr std::uint64_t kLeast = 3, kMost = 8;      // letters of a word
constexpr std::uint64_t kShort = 8, kLong = 14;     // frames of a letter
constexpr std::uint64_t kPause = 2;                 // frames after it
enum Stream : std::uint64_t { kFormants = 11, kWords, kNoise };

/// One word: its letters, and how many frames each lasts.
struct Word {
  std::vector<std::int64_t> letters;
  std::vector<std::int64_t> frames;
  std::int64_t length = 0;
};

class Tones final : public Dataset {
 public:
  Tones(std::size_t first, std::size_t samples, std::uint64_t seed)
      : first_(first), samples_(samples), seed_(seed) {
    const auto key = random_key(seed, kFormants);
    for (std::size_t letter = 0; letter < pattern_.size(); ++letter)
      for (std::size_t bin = 0; bin < kBins; ++bin)
        for (std::uint64_t formant = 0; formant < 3; ++formant) {
          const float centre = random_unit(key, letter * 4 + formant) * kBins;
          const float distance = (static_cast<float>(bin) - centre) / 4;
          pattern_[letter][bin] += 2 * std::exp(-distance * distance);
        }
  }
  [[nodiscard]] std::size_t samples() const noexcept override { return samples_; }
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept override { return kShape; }
  [[nodiscard]] int classes() const noexcept override { return kLetters + 1; }

  void fill(std::span<const std::uint32_t> which, Batch& into) const override {
    std::vector<Word> words;
    std::int64_t longest = 0;
    into.labels.clear();
    into.input_lengths.clear();
    into.label_lengths.clear();
    for (const auto sample : which) {
      const auto& word = words.emplace_back(word_of(first_ + sample));
      longest = std::max(longest, word.length);
      into.labels.insert(into.labels.end(), word.letters.begin(), word.letters.end());
      into.input_lengths.push_back(word.length);
      into.label_lengths.push_back(static_cast<std::int64_t>(word.letters.size()));
    }
    into.shape = {static_cast<std::int64_t>(which.size()), 1, kBins, longest};
    const auto image = static_cast<std::size_t>(kBins * longest);
    into.inputs.assign(which.size() * image, 0);
    for (std::size_t i = 0; i < words.size(); ++i)
      draw(words[i], random_key(seed_, kNoise, first_ + which[i]),
           std::span(into.inputs).subspan(i * image, image), longest);
  }

 private:
  [[nodiscard]] Word word_of(std::size_t sample) const {
    const auto key = random_key(seed_, kWords, sample);
    Word word;
    const auto letters = kLeast + random_bits(key, 0) % (kMost - kLeast + 1);
    for (std::uint64_t i = 0; i < letters; ++i) {
      word.letters.push_back(1 + static_cast<std::int64_t>(random_bits(key, 2 * i + 1) % kLetters));
      word.frames.push_back(
          static_cast<std::int64_t>(kShort + random_bits(key, 2 * i + 2) % (kLong - kShort + 1)));
      word.length += word.frames.back() + static_cast<std::int64_t>(kPause);
    }
    return word;
  }

  void draw(const Word& word, std::uint64_t noise, std::span<float> image,
            std::int64_t longest) const {
    for (std::int64_t bin = 0; bin < kBins; ++bin) {
      auto* row = image.data() + bin * longest;
      for (std::int64_t frame = 0; frame < word.length; ++frame)
        row[frame] = random_unit(noise, static_cast<std::uint64_t>(bin * longest + frame)) - 0.5F;
      std::int64_t begin = 0;
      for (std::size_t i = 0; i < word.letters.size(); ++i) {
        const auto& pattern = pattern_[static_cast<std::size_t>(word.letters[i] - 1)];
        for (auto frame = begin; frame < begin + word.frames[i]; ++frame)
          row[frame] += pattern[static_cast<std::size_t>(bin)];
        begin += word.frames[i] + static_cast<std::int64_t>(kPause);
      }
    }
  }

  static constexpr std::int64_t kShape[] = {1, kBins, -1};  // as many frames as the word has
  std::size_t first_, samples_;
  std::uint64_t seed_;
  std::array<std::array<float, kBins>, kLetters> pattern_{};
};

}  // namespace

Data make_tones(std::size_t samples, std::uint64_t seed) {
  return {std::make_unique<Tones>(0, samples, seed),
          std::make_unique<Tones>(samples, samples / 4 + 1, seed)};
}

}  // namespace sinew
