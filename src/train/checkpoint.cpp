#include "train/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

#include <sinew/error.hpp>

namespace sinew {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kUnfinished = ".part";
constexpr const char* kShared = "model.tensors";
constexpr std::size_t kKept = 2;

std::string own_name(int rank) { return fmt::format("rank-{}.tensors", rank); }

Error cannot(std::string_view what, const fs::path& path) {
  return {Errc::system,
          fmt::format("cannot {} '{}': {}", what, path.string(), std::strerror(errno))};
}

class File {
 public:
  File(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] bool write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const auto done = ::write(fd_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return true;
  }
  [[nodiscard]] bool flush() const { return ::fsync(fd_) == 0; }
  [[nodiscard]] bool close() {
    const int status = ::close(fd_);
    fd_ = -1;
    return status == 0;
  }

 private:
  int fd_;
};

void flush_folder(const fs::path& folder) {
  const File file(folder, O_RDONLY | O_DIRECTORY);
  if (!file.is_open() || !file.flush()) throw cannot("flush", folder);
}

std::vector<std::byte> frame_of(const Snapshot& snapshot) {
  std::vector<std::vector<std::uint64_t>> shapes;
  std::vector<TensorView> tensors;
  shapes.reserve(snapshot.state.arrays().size());
  for (const auto& [name, array] : snapshot.state.arrays()) {
    auto& shape = shapes.emplace_back();
    for (const auto& spec : snapshot.shapes)
      if (spec.name == name) shape.assign(spec.shape.begin(), spec.shape.end());
    if (shape.empty()) shape = {array.bytes.size() / size_of(array.dtype)};
    tensors.push_back({name, array.dtype, shape, array.bytes});
  }
  return write_tensor_frame(tensors, snapshot.metadata);
}

std::vector<std::byte> read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw cannot("read", path);
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw cannot("read", path);
  return bytes;
}

Snapshot read_snapshot(const fs::path& path) {
  const auto bytes = read_file(path);
  try {
    const TensorFrame frame(bytes);
    Snapshot snapshot;
    snapshot.metadata = frame.metadata();
    for (const auto& tensor : frame.tensors()) {
      std::vector<std::byte> data(tensor.bytes);
      tensor.copy_to(data);
      snapshot.state.put(std::string(tensor.name), tensor.dtype, data);
      snapshot.shapes.push_back(
          {std::string(tensor.name), {tensor.shape.begin(), tensor.shape.end()}});
    }
    return snapshot;
  } catch (const Error& error) {
    throw Error(Errc::invalid_argument,
                fmt::format("checkpoint '{}' is damaged: {}; the one before it may be whole",
                            path.string(), error.what()));
  }
}

// The number in "step-000120"; nothing for any other name.
std::optional<std::uint64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return {};
  std::uint64_t step = 0;
  const auto* begin = name.data() + kPrefix.size();
  const auto* end = name.data() + name.size();
  const auto [at, status] = std::from_chars(begin, end, step);
  if (status != std::errc{} || at != end) return {};
  return step;
}

// What went wrong anywhere, as rank 0 heard it; "" when nothing did.
std::string first_story(Communicator& communicator, const std::string& mine) {
  constexpr std::size_t kLength = 240;
  std::vector<std::uint8_t> own(kLength),
      all(kLength * static_cast<std::size_t>(communicator.size()));
  std::copy_n(mine.begin(), std::min(mine.size(), kLength), own.begin());
  communicator.allgather(std::span<const std::uint8_t>(own), std::span(all));
  for (std::size_t rank = 0; rank * kLength < all.size(); ++rank) {
    const auto* text = reinterpret_cast<const char*>(all.data() + rank * kLength);
    if (*text != '\0')
      return fmt::format("rank {}: {}", rank, std::string(text, ::strnlen(text, kLength)));
  }
  return "";
}

template <class Action>
std::string story_of(Action action) {
  try {
    action();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

void write_durably(const fs::path& path, std::span<const std::byte> bytes) {
  auto beside = path;
  beside += kUnfinished;
  File file(beside, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.is_open()) throw cannot("write", beside);
  if (!file.write(bytes) || !file.flush() || !file.close()) {
    const auto error = cannot("write", beside);
    ::unlink(beside.c_str());
    throw error;
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) throw cannot("rename", beside);
}

fs::path CheckpointFolder::path_of(std::uint64_t step) const {
  return folder_ / fmt::format("{}{:06}", kPrefix, step);
}

bool CheckpointFolder::save(Communicator& communicator, std::uint64_t step, const Snapshot& shared,
                            const Snapshot& own,
                            const std::function<void(std::string_view)>& warn) const {
  const auto final_path = path_of(step);
  auto path = final_path;
  path += kUnfinished;
  const bool is_first = communicator.rank() == 0;
  const auto agreed = [&](const std::string& mine) {
    const auto story = first_story(communicator, mine);
    if (story.empty()) return true;
    if (is_first) {
      warn(fmt::format("no checkpoint of step {}: {}; the last one stands, training goes on", step,
                       story));
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
    return false;
  };
  // The folder first, then all files, then the name: each only when all ranks have done the last.
  if (!agreed(story_of([&] {
        if (!is_first) return;
        fs::remove_all(path);
        fs::create_directories(path);
      })))
    return false;
  if (!agreed(story_of([&] {
        if (is_first) write_durably(path / kShared, frame_of(shared));
        if (!own.state.arrays().empty())
          write_durably(path / own_name(communicator.rank()), frame_of(own));
      })))
    return false;
  return agreed(story_of([&] {
    if (!is_first) return;
    flush_folder(path);
    fs::remove_all(final_path);
    fs::rename(path, final_path);
    flush_folder(folder_);
    keep_last_two();
  }));
}

void CheckpointFolder::keep_last_two() const {
  auto all = steps();
  while (all.size() > kKept) {
    fs::remove_all(path_of(all.front()));
    all.erase(all.begin());
  }
}

void CheckpointFolder::remove_unfinished() const {
  std::error_code none;
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(folder_, none))
    if (const auto name = entry.path().filename().string();
        name.starts_with(kPrefix) && name.ends_with(kUnfinished))
      unfinished.push_back(entry.path());
  for (const auto& path : unfinished) fs::remove_all(path, none);
}

std::vector<std::uint64_t> CheckpointFolder::steps() const {
  std::vector<std::uint64_t> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder_, none))
    if (const auto step = step_of(entry.path().filename().string())) found.push_back(*step);
  std::sort(found.begin(), found.end());
  return found;
}

Snapshot CheckpointFolder::load_shared(std::uint64_t step) const {
  return read_snapshot(path_of(step) / kShared);
}

Snapshot CheckpointFolder::load_own(std::uint64_t step, int rank) const {
  const auto path = path_of(step) / own_name(rank);
  return fs::exists(path) ? read_snapshot(path) : Snapshot{};
}

}  // namespace sinew
