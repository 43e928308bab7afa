// Tensor frames of strangers: read, or refused. The checksums are made to fit in every second
// trial, so that the fuzzer gets past them.
#define XXH_INLINE_ALL  // needs no library
#include <xxhash.h>

#include <cstring>
#include <vector>

#include <sinew/tensor_frame.hpp>
#include "codec/tensor_form.hpp"
#include "require.hpp"

using namespace sinew;

namespace {

std::vector<std::byte> signed_again(std::vector<std::byte> bytes) {
  FrameHead head;
  if (bytes.size() < sizeof head) return bytes;
  std::memcpy(&head, bytes.data(), sizeof head);
  const auto rest = bytes.size() - sizeof head;
  head.frame_bytes = bytes.size();
  if (head.directory_bytes <= rest && head.metadata_bytes <= rest - head.directory_bytes)
    head.directory_checksum =
        XXH3_64bits(bytes.data() + sizeof head, head.directory_bytes + head.metadata_bytes);
  head.head_checksum = XXH3_64bits(&head, offsetof(FrameHead, head_checksum));
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

void read(std::span<const std::byte> bytes, bool verify) {
  constexpr std::uint64_t kMost = 1 << 20;
  try {
    const TensorFrame frame(bytes, {.unpacked_bytes = kMost, .verify_data = verify});
    for (const auto& tensor : frame.tensors()) {
      require(tensor.bytes <= kMost, "limits hold");
      require(tensor.stored.empty() ||
                  (tensor.stored.data() >= bytes.data() &&
                   tensor.stored.data() + tensor.stored.size() <= bytes.data() + bytes.size()),
              "data lies in the frame");
      require(frame.find(tensor.name) == &tensor, "names are unique");
      std::vector<std::byte> data(tensor.bytes);
      try {
        tensor.copy_to(data);
      } catch (const Error& error) {
        require(error.code() == Errc::invalid_argument || error.code() == Errc::unsupported,
                "what cannot be unpacked is an invalid argument");
      }
    }
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument || error.code() == Errc::unsupported,
            "what is no frame is an invalid argument, or of a later version");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* const begin = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> bytes(begin, begin + size);
  read(bytes, true);
  read(signed_again(bytes), false);
  return 0;
}
