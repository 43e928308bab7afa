// IDX files as they are and as they should not be, and data made from a seed.
#include "train/dataset.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include <sinew/error.hpp>
#include "train/idx.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("sinew-data-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

const std::string kImages("\0\0\x08\x03\0\0\0\2\0\0\0\2\0\0\0\2\0\xff\x10\x20\1\2\3\4", 24);
const std::string kLabels("\0\0\x08\x01\0\0\0\2\7\3", 10);

TEST(Idx, is_read_as_images_with_labels) {
  const Folder folder;
  (void)folder.write("train-images-idx3-ubyte", kImages);
  (void)folder.write("train-labels-idx1-ubyte", kLabels);
  const auto data = open_idx(folder.path(), "train");
  EXPECT_EQ(data->samples(), 2U);
  EXPECT_EQ(data->classes(), 8);
  Batch batch;
  const std::uint32_t which[] = {1, 0};
  data->fill(which, batch);
  EXPECT_EQ(batch.labels, (std::vector<std::int64_t>{3, 7}));
  EXPECT_EQ(batch.shape, (std::vector<std::int64_t>{2, 1, 2, 2}));
  EXPECT_LT(batch.inputs[0], batch.inputs[3]);
  EXPECT_GT(batch.inputs[5], 1);
}

TEST(Idx, that_is_cut_anywhere_or_too_long_is_an_error_that_names_it) {
  const Folder folder;
  for (std::size_t length = 0; length <= kImages.size() + 1; ++length) {
    if (length == kImages.size()) continue;
    const auto path = folder.write("cut", (kImages + "x").substr(0, length));
    try {
      (void)read_idx(path);
      ADD_FAILURE() << length;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos);
    }
  }
}

TEST(Idx, that_says_to_be_huge_does_not_make_room_for_it) {
  const Folder folder;
  EXPECT_THROW((void)read_idx(folder.write(
                   "huge", std::string("\0\0\x08\x03\0\0\xff\xff\0\0\xff\xff\0\0\0\xff", 16))),
               Error);
  EXPECT_THROW((void)read_idx(folder.write(
                   "huger", std::string("\0\0\x08\x02\xff\xff\xff\xff\xff\xff\xff\xff", 12))),
               Error);
}

TEST(Idx, with_another_number_of_labels_than_images_is_refused) {
  const Folder folder;
  (void)folder.write("train-images-idx3-ubyte", kImages);
  (void)folder.write("train-labels-idx1-ubyte", std::string("\0\0\x08\x01\0\0\0\1\7", 9));
  EXPECT_THROW((void)open_idx(folder.path(), "train"), Error);
}

TEST(Data, made_from_a_seed_is_the_same_again_and_other_for_another_seed) {
  for (const auto* name : {"synthetic:100", "rows:100", "tones:100"}) {
    std::vector<std::uint32_t> which(100);
    std::iota(which.begin(), which.end(), 0U);
    Batch a, b, c, test;
    open_data(name, 1).train->fill(which, a);
    open_data(name, 1).train->fill(which, b);
    open_data(name, 2).train->fill(which, c);
    const auto data = open_data(name, 1);
    which.resize(data.test->samples());
    data.test->fill(which, test);
    EXPECT_EQ(a.inputs, b.inputs);
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_NE(a.inputs, c.inputs);
    EXPECT_NE(std::vector<float>(a.inputs.begin(), a.inputs.begin() + 10),
              std::vector<float>(test.inputs.begin(), test.inputs.begin() + 10));
    for (const auto label : a.labels)
      EXPECT_TRUE(label >= 0 && label < data.train->classes()) << label;
  }
}

TEST(Data, has_the_shape_that_its_name_tells) {
  for (const auto* name : {"synthetic:8", "rows:8", "tones:8"}) {
    const auto data = open_data(name, 1);
    const auto shape = data.train->shape();
    EXPECT_EQ(sample_shape(name), std::vector<std::int64_t>(shape.begin(), shape.end())) << name;
  }
  EXPECT_EQ(sample_shape("fashion"), sample_shape("synthetic"));
  EXPECT_EQ(sample_shape("speech:/somewhere"), sample_shape("tones"));
  EXPECT_TRUE(sample_shape("idx:/somewhere").empty()) << "whatever is in the files";
}

TEST(Data, of_an_unknown_name_lists_what_there_is) {
  try {
    (void)open_data("fashoin", 1);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'fashion'"), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)open_data("idx:/no/such/folder", 1), Error);
}

}  // namespace
}  // namespace sinew
