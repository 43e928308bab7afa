// Frames and what control frames carry, as they come off a socket.
#include <algorithm>
#include <span>

#include "require.hpp"
#include "transport/wire/control.hpp"
#include "transport/wire/frame.hpp"

using namespace sinew;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const auto input = std::as_bytes(std::span(data, bytes));
  if (input.size() >= wire::kHeaderBytes) {
    wire::Header header;
    std::copy_n(input.begin(), wire::kHeaderBytes, header.begin());
    // Mutations rarely guess a checksum: make it right, so that the fields are looked at.
    const auto sum = wire::header_sum(header);
    for (std::size_t i = 0; i < 4; ++i)
      header[wire::kHeaderBytes - 4 + i] = static_cast<std::byte>(sum >> (8 * i));
    wire::Frame frame;
    if (wire::decode(header, frame) == wire::Refusal::none) {
      require(frame.length <= wire::kMostPayload, "no frame is longer than frames may be");
      require(frame.kind != wire::Kind::data || frame.length <= frame.total,
              "no piece is longer than its message");
      require(wire::encode(frame) == header, "a frame survives being read");
    }
  }
  wire::History history;
  if (wire::decode_history(input, history)) {
    require(history.count <= wire::kHistory, "a history is bounded");
    wire::History again;
    require(wire::decode_history(wire::encode_history(history).get(), again) &&
                again.entries == history.entries,
            "a history survives being written");
  }
  if (const auto failure = wire::decode_failure(input)) {
    const auto again = wire::decode_failure(wire::encode_failure(*failure));
    require(again && again->why == failure->why && again->peer == failure->peer,
            "a failure survives being written");
  }
  return 0;
}
