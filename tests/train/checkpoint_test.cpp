// Checkpoints: whole or not there, on every rank alike.
#include "train/checkpoint.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "support/local_ranks.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() / ("sinew-checkpoint-" + std::to_string(::getpid()))) {}
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Snapshot snapshot_of(float value, std::size_t elements = 6) {
  Snapshot snapshot;
  snapshot.metadata = R"({"step":1})";
  const std::vector<float> values(elements, value);
  snapshot.state.put("parameter/w", std::span(values));
  snapshot.shapes = {{"parameter/w", {2, elements / 2}}};
  return snapshot;
}

void save(const fs::path& path, std::uint64_t step, int ranks = 2) {
  test::on_local(ranks, [&](Communicator& c) {
    const auto value = static_cast<float>(step);
    EXPECT_TRUE(CheckpointFolder(path).save(c, step, snapshot_of(value),
                                            c.rank() == 1 ? snapshot_of(value + 0.5F) : Snapshot{},
                                            [](std::string_view text) { ADD_FAILURE() << text; }));
  });
}

TEST(Checkpoint, is_read_back_as_it_was_written) {
  const Folder folder;
  save(folder.path(), 7);
  const CheckpointFolder checkpoints(folder.path());
  EXPECT_EQ(checkpoints.steps(), std::vector<std::uint64_t>{7});
  const auto shared = checkpoints.load_shared(7);
  EXPECT_EQ(shared.state, snapshot_of(7).state);
  EXPECT_EQ(shared.shapes, snapshot_of(7).shapes);
  EXPECT_EQ(shared.metadata, R"({"step":1})");
  EXPECT_EQ(checkpoints.load_own(7, 1).state, snapshot_of(7.5F).state);
  EXPECT_TRUE(checkpoints.load_own(7, 0).state.arrays().empty());
}

TEST(Checkpoint, keeps_the_one_before_and_no_more) {
  const Folder folder;
  for (const std::uint64_t step : {5, 10, 1000000, 2000000}) save(folder.path(), step);
  EXPECT_EQ(CheckpointFolder(folder.path()).steps(),
            (std::vector<std::uint64_t>{1000000, 2000000}));
}

TEST(Checkpoint, cut_or_changed_at_any_byte_is_an_error_that_names_the_file) {
  const Folder folder;
  save(folder.path(), 3);
  const CheckpointFolder checkpoints(folder.path());
  const auto path = checkpoints.path_of(3) / "model.tensors";
  std::ifstream file(path, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(file), {});
  const auto expect_damage = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      (void)checkpoints.load_shared(3);
      ADD_FAILURE() << bytes.size();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos);
    }
  };
  for (std::size_t length = 0; length < whole.size(); ++length)
    expect_damage(whole.substr(0, length));
  std::ofstream(path, std::ios::binary) << whole;
  EXPECT_NO_THROW((void)checkpoints.load_shared(3));
}

TEST(Checkpoint, that_cannot_be_written_leaves_the_last_one_and_tells_rank_0) {
  const Folder folder;
  save(folder.path(), 1);
  std::vector<std::string> told(2);
  test::on_local(2, [&](Communicator& c) {
    const auto warn = [&](std::string_view text) {
      told[static_cast<std::size_t>(c.rank())] = text;
    };
    auto own = snapshot_of(1);
    if (c.rank() == 1) own.metadata = "no JSON";  // cannot be made into a file
    EXPECT_FALSE(CheckpointFolder(folder.path()).save(c, 2, snapshot_of(2), own, warn));
    EXPECT_TRUE(CheckpointFolder(folder.path()).save(c, 3, snapshot_of(3), {}, warn)) << "goes on";
  });
  EXPECT_NE(told[0].find("no checkpoint of step 2: rank 1: "), std::string::npos) << told[0];
  EXPECT_EQ(told[1], "");
  EXPECT_EQ(CheckpointFolder(folder.path()).steps(), (std::vector<std::uint64_t>{1, 3}));
  for (const auto& entry : fs::directory_iterator(folder.path()))
    EXPECT_FALSE(entry.path().string().ends_with(".part")) << entry.path();
}

// A limit on the size of files is as good as a full disk: the write itself fails.
TEST(Checkpoint, on_a_full_disk_leaves_the_last_one) {
  const Folder folder;
  save(folder.path(), 1, 1);
  rlimit usual{};
  ::getrlimit(RLIMIT_FSIZE, &usual);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  std::string told;
  test::on_local(1, [&](Communicator& c) {
    const rlimit small{1000, usual.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    EXPECT_FALSE(
        CheckpointFolder(folder.path())
            .save(c, 2, snapshot_of(2, 10'000), {}, [&](std::string_view text) { told = text; }));
    ::setrlimit(RLIMIT_FSIZE, &usual);
  });
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_NE(told.find("File too large; the last one stands, training goes on"), std::string::npos)
      << told;
  EXPECT_EQ(CheckpointFolder(folder.path()).steps(), std::vector<std::uint64_t>{1});
  EXPECT_EQ(CheckpointFolder(folder.path()).load_shared(1).state, snapshot_of(1).state);
}

}  // namespace
}  // namespace sinew
