// Folders of speech: those of others with what may be wrong in them, and those espeak-ng makes.
#include "train/speech_folder.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <sinew/error.hpp>
#include "train/espeak.hpp"
#include "train/sound.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;
using Labels = std::vector<std::int64_t>;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("sinew-speech-" + std::to_string(::getpid()))) {
    fs::create_directories(path_ / "etc");
    fs::create_directories(path_ / "wav" / "clerks");
  }
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] const fs::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
  }

 private:
  fs::path path_;
};

std::string story_of(const Folder& folder) {
  try {
    (void)open_speech(folder.path(), 0, 1);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void write_two(const Folder& folder) {
  write_wav(folder.path() / "wav" / "clerks" / "a-1.wav", {16000, std::vector<float>(4000, 0.1F)});
  write_wav(folder.path() / "wav" / "b-2.wav", {8000, std::vector<float>(4000, -0.1F)});
  folder.write("etc/an4_train.transcription",
               "<s> RUBOUT G M </s> (a-1)\n\n<s> it's </s> (b-2)\r\n");
  folder.write("etc/an4_train.fileids", "clerks/a-1\nb-2\n");
  folder.write("etc/an4_test.transcription", "YES (b-2)\n");
}

TEST(Speech, has_a_label_for_each_letter_and_refuses_what_is_none) {
  EXPECT_EQ(labels_of("A Z'"), (Labels{2, 28, 27, 1}));
  EXPECT_EQ(labels_of(""), Labels{});
  EXPECT_THROW((void)labels_of("A7"), Error);
}

TEST(Speech, of_a_folder_as_AN4_is_laid_out_becomes_spectrograms_with_letters) {
  const Folder folder;
  write_two(folder);
  const auto data = open_speech(folder.path(), 0, 1);
  ASSERT_EQ(data.train->samples(), 2U);
  EXPECT_EQ(data.test->samples(), 1U);
  Batch batch;
  const std::uint32_t which[] = {1, 0};
  data.train->fill(which, batch);
  EXPECT_EQ(batch.label_lengths, (Labels{4, 10}));
  EXPECT_EQ(Labels(batch.labels.begin(), batch.labels.begin() + 4), labels_of("IT'S"));
  // 0.5 s and 0.25 s, a tenth faster or slower.
  EXPECT_NEAR(static_cast<double>(batch.input_lengths[0]), 49, 6);
  EXPECT_NEAR(static_cast<double>(batch.input_lengths[1]), 24, 4);
  EXPECT_EQ(batch.shape, (Labels{2, 1, 161, batch.input_lengths[0]}));
  EXPECT_EQ(batch.inputs.size(), 2U * 161 * static_cast<std::size_t>(batch.input_lengths[0]));
  EXPECT_EQ(open_speech(folder.path(), 1, 1).train->samples(), 1U);
}

TEST(Speech, varies_by_the_seed_when_it_is_for_training_and_never_for_testing) {
  const Folder folder;
  write_two(folder);
  const std::uint32_t which[] = {0};
  const auto fill = [&](std::uint64_t seed, bool is_training) {
    Batch batch;
    const auto data = open_speech(folder.path(), 0, seed);
    (is_training ? data.train : data.test)->fill(which, batch);
    return batch.inputs;
  };
  EXPECT_EQ(fill(1, true), fill(1, true));
  EXPECT_NE(fill(1, true), fill(2, true));
  EXPECT_EQ(fill(1, false), fill(2, false));
}

TEST(Speech, that_is_not_there_or_wrong_is_named_with_its_line) {
  const Folder folder;
  EXPECT_TRUE(contains(story_of(folder), "_train.transcription"));
  write_two(folder);
  EXPECT_EQ(story_of(folder), "");
  folder.write("etc/an4_train.transcription", "YES (b-2)\nNO b-2\n");
  EXPECT_TRUE(contains(story_of(folder), "transcription:2: no (id)")) << story_of(folder);
  folder.write("etc/an4_train.transcription", "YES (c-3)\n");
  EXPECT_TRUE(contains(story_of(folder), "transcription:1: no c-3.wav")) << story_of(folder);
  folder.write("etc/an4_train.transcription", "ROOM 7 (b-2)\n");
  EXPECT_TRUE(contains(story_of(folder), "transcription:1: '7'")) << story_of(folder);
  folder.write("etc/an4_train.transcription", "\n");
  EXPECT_TRUE(contains(story_of(folder), "no utterances")) << story_of(folder);
}

TEST(Speech, that_espeak_makes_is_kept_and_added_to) {
  const Folder folder;
  int told = 0;
  const auto say = [&](std::string_view) { ++told; };
  make_speech(folder.path() / "made", 2, 1, 5, say);
  EXPECT_EQ(told, 2);
  const auto first = list_speech(folder.path() / "made", "train");
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[1].text, spoken_text("train", 1, 5));
  const auto sound = read_sound(first[0].sound);
  EXPECT_EQ(sound.rate, 16000);
  EXPECT_GT(sound.samples.size(), 4000U);
  EXPECT_GT(*std::max_element(sound.samples.begin(), sound.samples.end()), 0.05F);
  const auto written = fs::last_write_time(first[0].sound);
  make_speech(folder.path() / "made", 3, 1, 5, say);
  EXPECT_EQ(told, 3);
  EXPECT_EQ(list_speech(folder.path() / "made", "train").size(), 3U);
  EXPECT_EQ(fs::last_write_time(first[0].sound), written);
  make_speech(folder.path() / "made", 3, 1, 5, say);
  EXPECT_EQ(told, 3) << "nothing is left to do";
}

TEST(Speech, says_different_things_for_each_part_number_and_seed) {
  EXPECT_EQ(spoken_text("train", 3, 1), spoken_text("train", 3, 1));
  EXPECT_NE(spoken_text("train", 3, 1), spoken_text("test", 3, 1));
  EXPECT_NE(spoken_text("train", 3, 1), spoken_text("train", 4, 1));
  EXPECT_NE(spoken_text("train", 3, 1), spoken_text("train", 3, 2));
  for (std::size_t i = 0; i < 200; ++i) EXPECT_NO_THROW((void)labels_of(spoken_text("test", i, 1)));
}

TEST(Speech, names_the_package_that_is_missing) {
  const Folder folder;
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);
  std::string story;
  try {
    make_speech(folder.path() / "none", 1, 1, 1, {});
  } catch (const Error& error) {
    story = error.what();
  }
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_TRUE(contains(story, "apt-get install espeak-ng")) << story;
}

}  // namespace
}  // namespace sinew
