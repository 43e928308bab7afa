// Checkpoints: a folder a step, complete or not there. docs/training.md describes what is in it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sinew/communicator.hpp>
#include <sinew/scheme.hpp>
#include <sinew/tensor_frame.hpp>

namespace sinew {

/// Named arrays and a little JSON: one file of a checkpoint.
struct Snapshot {
  std::string metadata;            // a JSON object
  std::vector<TensorSpec> shapes;  // of arrays that are more than one row; by their name in `state`
  State state;
};

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// All ranks together: `shared` is rank 0's, `own` each rank's (nothing is written of an empty
  /// one). Files are complete on disk before the folder gets its name; the last two are kept. Where
  /// writing fails on any rank nothing has changed, every rank gets the same story from `warn`'s
  /// rank 0, and false.
  bool save(Communicator& communicator, std::uint64_t step, const Snapshot& shared,
            const Snapshot& own, const std::function<void(std::string_view)>& warn) const;

  /// For one rank, when none is saving.
  void remove_unfinished() const;

  /// Steps of complete checkpoints, ascending.
  [[nodiscard]] std::vector<std::uint64_t> steps() const;

  /// Throw Error{invalid_argument} that names the file on anything but what save() wrote.
  [[nodiscard]] Snapshot load_shared(std::uint64_t step) const;
  /// Empty when that rank had nothing of its own.
  [[nodiscard]] Snapshot load_own(std::uint64_t step, int rank) const;

  [[nodiscard]] std::filesystem::path path_of(std::uint64_t step) const;

 private:
  void keep_last_two() const;
  std::filesystem::path folder_;
};

/// Written beside, flushed to the disk, then renamed. Throws Error{system}.
void write_durably(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace sinew
