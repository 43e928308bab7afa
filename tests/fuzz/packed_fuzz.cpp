// Packed bytes of strangers: unpacked into the room there is, or refused.
#include <algorithm>
#include <vector>

#include <sinew/error.hpp>
#include <sinew/lossless.hpp>
#include "require.hpp"

using namespace sinew;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    // What the sender says is used only as far as we are ready to go.
    std::vector<std::byte> into(std::min<std::uint64_t>(unpacked_bytes(bytes), 1 << 20));
    const auto view = plain_view(bytes);
    unpack(bytes, into);
    require(!view || std::equal(view->begin(), view->end(), into.begin(), into.end()),
            "in place it is the same");
    LosslessEncoder encoder({.codec = Codec::lz4, .min_bytes = 0});
    std::vector<std::byte> again;
    for (const auto piece : encoder.encode(into))
      again.insert(again.end(), piece.begin(), piece.end());
    std::vector<std::byte> back(into.size());
    unpack(again, back);
    require(back == into, "what was unpacked can be packed again");
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument || error.code() == Errc::unsupported,
            "what is not packed is an invalid argument, or of a later version");
  }
  return 0;
}
