// Tensor frames as messages between two ranks: a length, then the frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sinew/communicator.hpp>

namespace sinew {

/// Frames to and from one rank, one at a time in each direction. Never moved while one is under
/// way.
class Letters {
 public:
  /// `most_bytes`: a longer frame is refused, whatever the other rank says.
  Letters(Communicator& communicator, int peer, std::uint64_t most_bytes)
      : communicator_(communicator), peer_(peer), most_bytes_(most_bytes) {}

  /// Starts sending; what was sent before is waited for first.
  void send(std::vector<std::byte> frame);
  void finish_sending();

  /// True when a whole frame has come: it stays until the next call. Throws Error{invalid_argument}
  /// for a length out of bounds.
  bool poll();
  /// Waits for one. Throws Error{timeout} that names the rank.
  std::vector<std::byte>& receive();
  [[nodiscard]] std::vector<std::byte>& frame() noexcept { return in_; }

  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }

 private:
  enum class Stage : std::uint8_t { idle, length, body };
  void expect_length();
  void expect_body();

  Communicator& communicator_;
  int peer_;
  std::uint64_t most_bytes_;
  std::vector<std::byte> in_, out_;
  std::uint64_t in_length_ = 0, out_length_ = 0, bytes_sent_ = 0;
  std::vector<Request> sending_;
  Request receiving_;
  Stage stage_ = Stage::idle;
};

}  // namespace sinew
