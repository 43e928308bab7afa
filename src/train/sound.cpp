#include "train/sound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numbers>
#include <string>
#include <string_view>

#include <sinew/error.hpp>

namespace sinew {
namespace {

namespace fs = std::filesystem;
static_assert(std::endian::native == std::endian::little, "samples are read as they lie");

[[noreturn]] void refuse(const fs::path& path, std::string_view why) {
  throw Error(Errc::invalid_argument, fmt::format("'{}': {}", path.string(), why));
}

std::string read_whole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(Errc::system, fmt::format("cannot read '{}'", path.string()));
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// What a header says of the bytes after it.
struct Form {
  int rate = 0, channels = 0;
  bool swapped = false;  // big-endian
  std::string_view bytes;
};

Sound decode(const Form& form) {
  const auto channels = static_cast<std::size_t>(form.channels);
  Sound sound{form.rate, std::vector<float>(form.bytes.size() / 2 / channels)};
  for (std::size_t i = 0; i < sound.samples.size(); ++i) {
    float sum = 0;
    for (std::size_t channel = 0; channel < channels; ++channel) {
      auto bits = number_at<std::uint16_t>(form.bytes, 2 * (i * channels + channel));
      if (form.swapped) bits = static_cast<std::uint16_t>(bits << 8 | bits >> 8);
      sum += static_cast<float>(static_cast<std::int16_t>(bits));
    }
    sound.samples[i] = sum / (32768.0F * static_cast<float>(form.channels));
  }
  return sound;
}

void check(const fs::path& path, const Form& form) {
  if (form.rate < 1000 || form.rate > 1'000'000)
    refuse(path, fmt::format("{} samples a second", form.rate));
  if (form.channels < 1 || form.channels > 64)
    refuse(path, fmt::format("{} channels", form.channels));
}

Form read_wav_header(const fs::path& path, std::string_view file) {
  Form form;
  for (std::size_t at = 12; at + 8 <= file.size();) {
    const auto name = file.substr(at, 4);
    const auto length = std::size_t{number_at<std::uint32_t>(file, at + 4)};
    at += 8;
    if (name == "fmt ") {
      if (length < 16 || at + 16 > file.size()) refuse(path, "its header is cut off");
      const auto coding = number_at<std::uint16_t>(file, at);
      const auto bits = number_at<std::uint16_t>(file, at + 14);
      if ((coding != 1 && coding != 0xFFFE) || bits != 16)
        refuse(path, "a WAV file must be uncompressed and have 16 bits a sample");
      form.channels = number_at<std::uint16_t>(file, at + 2);
      form.rate = static_cast<int>(number_at<std::uint32_t>(file, at + 4));
    } else if (name == "data") {
      if (form.channels == 0) refuse(path, "samples before the header");
      if (length > file.size() - at)
        refuse(path, fmt::format("{} of {} bytes of sound are there", file.size() - at, length));
      form.bytes = file.substr(at, length);
      return form;
    }
    at += length + length % 2;
  }
  refuse(path, "it has no sound");
}

// A field of a SPHERE header: "name -i value" on a line of its own.
std::string_view field_of(std::string_view header, std::string_view name) {
  const auto at = header.find(fmt::format("\n{} -", name));
  if (at == std::string_view::npos) return {};
  auto line = header.substr(at + 1 + name.size() + 2);
  line = line.substr(0, line.find('\n'));
  const auto space = line.find(' ');
  return space == std::string_view::npos ? std::string_view{} : line.substr(space + 1);
}
int number_of(std::string_view text, int otherwise) {
  int value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Form read_sphere_header(const fs::path& path, std::string_view file) {
  constexpr std::size_t kHeader = 1024;
  if (file.size() < kHeader) refuse(path, "its header is cut off");
  const auto header = file.substr(0, kHeader);
  const auto coding = field_of(header, "sample_coding");
  if ((!coding.empty() && coding != "pcm") || number_of(field_of(header, "sample_n_bytes"), 2) != 2)
    refuse(path, "a SPHERE file must be uncompressed and have 16 bits a sample");
  Form form{number_of(field_of(header, "sample_rate"), 16000),
            number_of(field_of(header, "channel_count"), 1),
            field_of(header, "sample_byte_format") == "10", file.substr(kHeader)};
  const auto samples = number_of(field_of(header, "sample_count"), -1);
  const auto bytes = std::size_t{2} * static_cast<std::size_t>(std::max(0, samples)) *
                     static_cast<std::size_t>(std::max(0, form.channels));
  if (samples < 0) return form;
  if (bytes > form.bytes.size())
    refuse(path, fmt::format("{} of {} bytes of sound are there", form.bytes.size(), bytes));
  form.bytes = form.bytes.substr(0, bytes);
  return form;
}

/// A low-pass filter at every fraction of a sample: rows of taps of a windowed sinc.
class Filter {
 public:
  static constexpr int kReach = 16;  // samples to each side

  /// `cut`: the highest frequency that passes, in halves of the input's rate.
  explicit Filter(double cut) : taps_(std::size_t{kRows} * kTaps) {
    for (int row = 0; row < kRows; ++row)
      for (int tap = 0; tap < kTaps; ++tap) {
        const double x = tap - kReach + 1 - static_cast<double>(row) / kRows;
        const double window = 0.5 + 0.5 * std::cos(std::numbers::pi * x / (kReach + 1));
        const double angle = std::numbers::pi * cut * x;
        const double sinc = std::abs(angle) < 1e-9 ? 1 : std::sin(angle) / angle;
        taps_[static_cast<std::size_t>(row) * kTaps + static_cast<std::size_t>(tap)] =
            static_cast<float>(cut * window * sinc);
      }
  }
  [[nodiscard]] float at(const std::vector<float>& samples, double place) const {
    const auto whole = static_cast<std::int64_t>(place);
    const auto row = static_cast<std::int64_t>((place - static_cast<double>(whole)) * kRows);
    const auto* taps = taps_.data() + row * kTaps;
    const auto first = whole - kReach + 1;
    const auto from = std::max<std::int64_t>(0, -first);
    const auto to =
        std::min<std::int64_t>(kTaps, static_cast<std::int64_t>(samples.size()) - first);
    float sum = 0;
    for (auto tap = from; tap < to; ++tap)
      sum += taps[tap] * samples[static_cast<std::size_t>(first + tap)];
    return sum;
  }

 private:
  static constexpr int kRows = 256, kTaps = 2 * kReach;
  std::vector<float> taps_;
};

}  // namespace

Sound read_sound(const fs::path& path) {
  const auto file = read_whole(path);
  const std::string_view bytes = file;
  Form form;
  if (bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WAVE")
    form = read_wav_header(path, bytes);
  else if (bytes.starts_with("NIST_1A"))
    form = read_sphere_header(path, bytes);
  else
    refuse(path, "neither a WAV nor a SPHERE file");
  check(path, form);
  return decode(form);
}

void write_wav(const fs::path& path, const Sound& sound) {
  const auto bytes = static_cast<std::uint32_t>(sound.samples.size() * 2);
  const auto rate = static_cast<std::uint32_t>(sound.rate);
  std::string file;
  const auto put = [&](auto value) {
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  file += "RIFF";
  put(36 + bytes);
  file += "WAVEfmt ";
  put(std::uint32_t{16});
  put(std::uint16_t{1});
  put(std::uint16_t{1});
  put(rate);
  put(2 * rate);
  put(std::uint16_t{2});
  put(std::uint16_t{16});
  file += "data";
  put(bytes);
  for (const auto sample : sound.samples)
    put(static_cast<std::int16_t>(std::lround(std::clamp(sample, -1.0F, 1.0F) * 32767)));
  const auto beside = path.string() + ".part";
  std::ofstream to(beside, std::ios::binary);
  to << file;
  to.close();
  std::error_code failed;
  if (to) fs::rename(beside, path, failed);
  if (!to || failed) throw Error(Errc::system, fmt::format("cannot write '{}'", path.string()));
}

Sound resample(const Sound& sound, int rate, double speed) {
  const double step = speed * sound.rate / rate;
  if (step == 1) return sound;
  const Filter filter(std::min(1.0, 1 / step) * 0.95);
  Sound result{rate, std::vector<float>(static_cast<std::size_t>(
                         static_cast<double>(sound.samples.size()) / step))};
  for (std::size_t i = 0; i < result.samples.size(); ++i)
    result.samples[i] = filter.at(sound.samples, static_cast<double>(i) * step);
  return result;
}

}  // namespace sinew
