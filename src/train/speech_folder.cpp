#include "train/speech_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include <sinew/error.hpp>
#include "base/counter_random.hpp"
#include "train/sound.hpp"
#include "train/spectrogram.hpp"
#include "train/synthetic.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;
enum Stream : std::uint64_t { kVariation = 21, kHiss };

[[noreturn]] void refuse(const fs::path& file, std::size_t line, std::string_view why) {
  throw Error(Errc::invalid_argument, fmt::format("{}:{}: {}", file.string(), line, why));
}

// The one file in etc/ (or the folder itself) whose name ends so; "" when there is none.
fs::path find_by_end(const fs::path& folder, std::string_view end) {
  for (const auto& place : {folder / "etc", folder}) {
    if (!fs::is_directory(place)) continue;
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(place))
      if (entry.path().filename().string().ends_with(end)) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    if (!found.empty()) return found.front();
  }
  return {};
}

// Ids by their last part, with the folders before it.
std::map<std::string, std::string> read_file_ids(const fs::path& file) {
  std::map<std::string, std::string> ids;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) ids[fs::path(line).filename().string()] = line;
  }
  return ids;
}

fs::path find_sound(const fs::path& folder, const std::string& id) {
  for (const auto* place : {"wav", ""})
    for (const auto* kind : {".wav", ".sph"})
      if (auto path = folder / place / (id + kind); fs::exists(path)) return path;
  return {};
}

// Without <s> and other marks, in capitals.
std::string plain_words(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string plain;
  for (std::string word; words >> word;) {
    if (word.front() == '<' && word.back() == '>') continue;
    if (!plain.empty()) plain += ' ';
    for (const char c : word) plain += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return plain;
}

Utterance parse_line(const fs::path& folder, const fs::path& file, std::size_t number,
                     std::string_view line, const std::map<std::string, std::string>& ids) {
  const auto open = line.rfind('('), close = line.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    refuse(file, number, "no (id) of a recording at the end");
  const std::string id(line.substr(open + 1, close - open - 1));
  const auto at = ids.find(id);
  const auto& place = at == ids.end() ? id : at->second;
  Utterance utterance{find_sound(folder, place), plain_words(line.substr(0, open))};
  if (utterance.sound.empty())
    refuse(file, number,
           fmt::format("no {}.wav or .sph in '{}'", place, (folder / "wav").string()));
  if (utterance.text.empty()) refuse(file, number, "no words");
  try {
    (void)labels_of(utterance.text);
  } catch (const Error& error) {
    refuse(file, number, error.what());
  }
  return utterance;
}

class Speech final : public Dataset {
 public:
  Speech(std::vector<Utterance> utterances, std::uint64_t seed, bool varies)
      : utterances_(std::move(utterances)), seed_(seed), varies_(varies) {}
  [[nodiscard]] std::size_t samples() const noexcept override { return utterances_.size(); }
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept override { return kShape; }
  [[nodiscard]] int classes() const noexcept override { return 29; }

  void fill(std::span<const std::uint32_t> which, Batch& into) const override {
    std::vector<Sound> sounds;
    std::size_t longest = 0;
    into.labels.clear();
    into.input_lengths.clear();
    into.label_lengths.clear();
    for (const auto sample : which) {
      const auto& sound = sounds.emplace_back(sound_of(sample));
      const auto frames = spectrogram_frames(sound.samples.size());
      const auto labels = labels_of(utterances_[sample].text);
      longest = std::max(longest, frames);
      into.labels.insert(into.labels.end(), labels.begin(), labels.end());
      into.input_lengths.push_back(static_cast<std::int64_t>(frames));
      into.label_lengths.push_back(static_cast<std::int64_t>(labels.size()));
    }
    into.shape = {static_cast<std::int64_t>(which.size()), 1, kBins,
                  static_cast<std::int64_t>(longest)};
    const auto image = kBins * longest;
    into.inputs.assign(which.size() * image, 0);
    for (std::size_t i = 0; i < sounds.size(); ++i)
      spectrogram_.draw(sounds[i].samples, std::span(into.inputs).subspan(i * image, image),
                        longest);
  }

 private:
  [[nodiscard]] Sound sound_of(std::uint32_t sample) const {
    const auto sound = read_sound(utterances_[sample].sound);
    if (!varies_) return resample(sound, kSpeechRate);
    const auto key = random_key(seed_, kVariation, sample);
    auto varied = resample(sound, kSpeechRate, 0.9 + 0.2 * random_unit(key, 0));
    double energy = 0;
    for (const auto value : varied.samples) energy += static_cast<double>(value) * value;
    const auto loudness = static_cast<float>(
        std::sqrt(energy / std::max<double>(1, static_cast<double>(varied.samples.size()))));
    const float gain = std::exp2(2 * random_unit(key, 1) - 1);              // half to double
    const float hiss = loudness * std::exp2(-3 - 3 * random_unit(key, 2));  // 18 to 36 dB below
    const auto hiss_key = random_key(seed_, kHiss, sample);
    for (std::size_t i = 0; i < varied.samples.size(); ++i)
      varied.samples[i] = gain * (varied.samples[i] + hiss * random_normal(hiss_key, i));
    return varied;
  }

  static constexpr std::int64_t kShape[] = {1, kBins, -1};  // as many frames as there are
  std::vector<Utterance> utterances_;
  std::uint64_t seed_;
  bool varies_;
  Spectrogram spectrogram_;
};

}  // namespace

std::vector<std::int64_t> labels_of(std::string_view text) {
  std::vector<std::int64_t> labels;
  for (const char c : text) {
    if (c == '\'')
      labels.push_back(1);
    else if (c >= 'A' && c <= 'Z')
      labels.push_back(2 + (c - 'A'));
    else if (c == ' ')
      labels.push_back(28);
    else
      throw Error(Errc::invalid_argument,
                  fmt::format("'{}' in \"{}\" is no letter, apostrophe or space: write numbers out",
                              c, text));
  }
  return labels;
}

std::vector<Utterance> list_speech(const fs::path& folder, std::string_view part) {
  if (!fs::is_directory(folder))
    throw Error(Errc::system, fmt::format("no folder '{}'", folder.string()));
  const auto file = find_by_end(folder, fmt::format("_{}.transcription", part));
  if (file.empty())
    throw Error(Errc::system,
                fmt::format("no etc/*_{}.transcription in '{}': a line \"WORDS (id)\" "
                            "for each wav/id.wav",
                            part, folder.string()));
  const auto ids = read_file_ids(find_by_end(folder, fmt::format("_{}.fileids", part)));
  std::vector<Utterance> utterances;
  std::ifstream lines(file);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    utterances.push_back(parse_line(folder, file, number, line, ids));
  }
  if (utterances.empty()) refuse(file, number, "no utterances");
  return utterances;
}

Data open_speech(const fs::path& folder, std::size_t most, std::uint64_t seed) {
  auto train = list_speech(folder, "train"), test = list_speech(folder, "test");
  if (most > 0) {
    train.resize(std::min(most, train.size()));
    test.resize(std::min(most / 4 + 1, test.size()));
  }
  return {std::make_unique<Speech>(std::move(train), seed, true),
          std::make_unique<Speech>(std::move(test), seed, false)};
}

}  // namespace sinew
