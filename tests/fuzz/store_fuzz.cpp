// Frames of a served store, in portions of any size.
#include <algorithm>
#include <cstring>

#include <sinew/error.hpp>
#include "require.hpp"
#include "transport/rendezvous/store.hpp"
#include "transport/rendezvous/store_frame.hpp"

using namespace sinew;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  StoreFrameReader reader;
  std::size_t portion = 1;
  try {
    while (bytes > 0) {
      const auto room = reader.room();
      require(room.size() <= kLongestKey + kLongestValue, "room is bounded");
      const auto some = std::min({room.size(), bytes, portion});
      std::memcpy(room.data(), data, some);
      reader.took(some);
      data += some;
      bytes -= some;
      portion = portion * 3 % 61 + 1;
      if (!reader.is_complete()) continue;
      const auto frame = reader.take();
      require(frame.key.size() <= kLongestKey && frame.value.size() <= kLongestValue,
              "limits hold");
      const auto text = encode(frame);
      StoreFrameReader again;
      for (std::size_t at = 0; at < text.size();) {
        const auto space = again.room();
        std::memcpy(space.data(), text.data() + at, space.size());
        again.took(space.size());
        at += space.size();
      }
      require(again.is_complete() && again.take() == frame, "a frame survives being written");
    }
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument, "what is no frame is an invalid argument");
  }
  return 0;
}
