// Sound files as they are and as they should not be, other rates, and pictures of sound.
#include "train/sound.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numbers>

#include <sinew/error.hpp>
#include "train/spectrogram.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;

class File {
 public:
  File() : path_(fs::temp_directory_path() / ("sinew-sound-" + std::to_string(::getpid()))) {}
  ~File() { fs::remove(path_); }
  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

 private:
  fs::path path_;
};

Sound tone(double hertz, int rate, double seconds) {
  Sound sound{rate, std::vector<float>(static_cast<std::size_t>(rate * seconds))};
  for (std::size_t i = 0; i < sound.samples.size(); ++i)
    sound.samples[i] = static_cast<float>(
        0.5 * std::sin(2 * std::numbers::pi * hertz * static_cast<double>(i) / rate));
  return sound;
}

TEST(Sound, is_read_as_it_was_written) {
  const File file;
  const auto sound = tone(440, 22050, 0.1);
  write_wav(file.path(), sound);
  const auto back = read_sound(file.path());
  EXPECT_EQ(back.rate, 22050);
  ASSERT_EQ(back.samples.size(), sound.samples.size());
  for (std::size_t i = 0; i < sound.samples.size(); ++i)
    EXPECT_NEAR(back.samples[i], sound.samples[i], 1e-4) << i;
}

TEST(Sound, that_is_cut_anywhere_is_an_error_that_names_the_file) {
  const File file;
  write_wav(file.path(), {16000, {0.5F, -0.5F, 0.25F}});
  const auto whole = file.bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    file.write(whole.substr(0, length));
    try {
      (void)read_sound(file.path());
      FAIL() << "cut to " << length << " bytes";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(file.path().string()), std::string::npos);
    }
  }
}

TEST(Sound, of_a_sphere_file_is_read_in_its_byte_order) {
  const File file;
  std::string header =
      "NIST_1A\n   1024\nchannel_count -i 1\nsample_count -i 2\nsample_rate -i 8000\n"
      "sample_n_bytes -i 2\nsample_byte_format -s2 10\nsample_coding -s3 pcm\nend_head\n";
  header.resize(1024, ' ');
  file.write(header + std::string("\x40\x00\xC0\x00", 4));
  const auto sound = read_sound(file.path());
  EXPECT_EQ(sound.rate, 8000);
  EXPECT_EQ(sound.samples, (std::vector<float>{0.5F, -0.5F}));
  file.write(header + "x");
  EXPECT_THROW((void)read_sound(file.path()), Error);
}

// Away from the ends, where there is silence beside it.
TEST(Sound, at_another_rate_is_the_same_tone) {
  for (const auto& [from, to, speed] :
       {std::tuple{22050, 16000, 1.0}, {16000, 16000, 1.1}, {8000, 16000, 0.9}}) {
    const auto sound = resample(tone(440, from, 0.5), to, speed);
    EXPECT_EQ(sound.rate, to);
    const auto expected = tone(440 * speed, to, 0.5 / speed);
    ASSERT_NEAR(static_cast<double>(sound.samples.size()),
                static_cast<double>(expected.samples.size()), 2);
    for (std::size_t i = 100; i + 100 < sound.samples.size(); ++i)
      ASSERT_NEAR(sound.samples[i], expected.samples[i], 0.01) << from << " Hz, sample " << i;
  }
}

TEST(Spectrogram, has_its_maximum_where_the_tone_is) {
  const auto sound = tone(1000, kSpeechRate, 0.2);
  const auto frames = spectrogram_frames(sound.samples.size());
  EXPECT_EQ(frames, 19U);
  const auto row = frames + 3;
  std::vector<float> image(kBins * row, -7);
  Spectrogram().draw(sound.samples, image, row);
  double sum = 0, squares = 0;
  for (std::size_t frame = 0; frame < frames; ++frame) {
    std::size_t best = 0;
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      if (image[bin * row + frame] > image[best * row + frame]) best = bin;
      sum += image[bin * row + frame];
      squares += image[bin * row + frame] * image[bin * row + frame];
    }
    EXPECT_EQ(best, 20U) << "50 Hz a bin";
  }
  EXPECT_NEAR(sum, 0, 1e-2);
  EXPECT_NEAR(squares / static_cast<double>(kBins * frames), 1, 1e-3);
  EXPECT_EQ(image[frames], -7) << "outside of the frames nothing is touched";
}

TEST(Spectrogram, agrees_with_its_definition) {
  std::vector<float> samples(kWindow);
  for (std::size_t i = 0; i < kWindow; ++i)
    samples[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 50;
  std::vector<float> image(kBins);
  Spectrogram().draw(samples, image, 1);
  std::vector<double> expected(kBins);
  double mean = 0, squares = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    double real = 0, imaginary = 0;
    for (std::size_t i = 0; i < kWindow; ++i) {
      const double t = static_cast<double>(i);
      const double x =
          samples[i] * (0.54 - 0.46 * std::cos(2 * std::numbers::pi * t / (kWindow - 1)));
      const double angle = 2 * std::numbers::pi * static_cast<double>(bin) * t / kWindow;
      real += x * std::cos(angle);
      imaginary += x * std::sin(angle);
    }
    expected[bin] = std::log1p(std::hypot(real, imaginary));
    mean += expected[bin] / kBins;
  }
  for (const auto value : expected) squares += (value - mean) * (value - mean) / kBins;
  for (std::size_t bin = 0; bin < kBins; ++bin)
    EXPECT_NEAR(image[bin], (expected[bin] - mean) / std::sqrt(squares), 1e-3) << bin;
}

TEST(Spectrogram, of_silence_and_of_nothing_has_no_strange_numbers) {
  for (const std::size_t samples : {0U, 100U, 5000U}) {
    std::vector<float> image(kBins * spectrogram_frames(samples), -7);
    Spectrogram().draw(std::vector<float>(samples), image, spectrogram_frames(samples));
    EXPECT_TRUE(std::all_of(image.begin(), image.end(), [](float x) { return x == 0; }));
  }
}

}  // namespace
}  // namespace sinew
