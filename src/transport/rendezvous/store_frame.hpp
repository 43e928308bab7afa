// What a store's server and its clients say to each other once they trust each other: a header of
// 16 bytes, a key, a value. Numbers are little-endian; lengths beyond the store's limits end the
// connection before anything is made room for.
//
//   byte  0     what: a request's or a reply's
//   byte  2-3   bytes of the key
//   byte  4-7   bytes of the value
//   byte  8-11  milliseconds that a get may wait
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sinew {

struct StoreFrame {
  enum class What : std::uint8_t {
    set = 1,
    get,
    leave,      // the client needs the store no longer
    done = 65,  // replies: with the value of a get
    taken,      // the key has another value, which is sent along
    absent,     // the time of a get is over
    lost,       // a rank that others wait for is gone; the value says which
    refused,    // a limit is reached; the value says which
  };
  What what{};
  std::uint32_t wait_ms = 0;
  std::string key{}, value{};
  friend bool operator==(const StoreFrame&, const StoreFrame&) = default;
};

std::string encode(const StoreFrame& frame);

/// Takes a frame from bytes in any portions.
class StoreFrameReader {
 public:
  /// Where the next bytes go, never past the frame; then how many came.
  [[nodiscard]] std::span<std::byte> room() noexcept;
  /// Throws Error{invalid_argument} for what is not a frame, or is too long.
  void took(std::size_t bytes);
  [[nodiscard]] bool is_complete() const noexcept;
  /// The frame; the reader begins anew.
  StoreFrame take();

 private:
  std::array<std::byte, 16> header_{};
  std::string body_;
  std::size_t at_ = 0;  // bytes of header and body so far
};

}  // namespace sinew
