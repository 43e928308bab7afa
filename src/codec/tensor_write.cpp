#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include <sinew/tensor_frame.hpp>
#include "codec/tensor_form.hpp"

namespace sinew {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(Errc::invalid_argument, why); }

void append(std::vector<std::byte>& to, const void* from, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(from);
  to.insert(to.end(), begin, begin + bytes);
}

void fill_up(std::vector<std::byte>& bytes, std::uint64_t multiple) {
  bytes.resize(round_up(bytes.size(), multiple));
}

void check(std::span<const TensorView> tensors, std::string_view metadata) {
  std::set<std::string_view> names;
  for (const auto& tensor : tensors) {
    if (!names.insert(tensor.name).second)
      refuse(fmt::format("two tensors of a frame are named '{}'", tensor.name));
    if (tensor.shape.size() > kMostDimensions)
      refuse(fmt::format("tensor '{}' has {} dimensions; {} are possible", tensor.name,
                         tensor.shape.size(), kMostDimensions));
    std::uint64_t bytes = size_of(tensor.dtype);
    for (const auto extent : tensor.shape)
      if (__builtin_mul_overflow(bytes, extent, &bytes))
        refuse(fmt::format("tensor '{}' has more elements than there are addresses", tensor.name));
    if (bytes != tensor.data.size())
      refuse(fmt::format("tensor '{}' has {} bytes; its shape of {} asks for {}", tensor.name,
                         tensor.data.size(), name(tensor.dtype), bytes));
  }
  if (!metadata.empty() && !is_json_object(metadata))
    refuse("the metadata of a frame is no JSON object");
}

// Data in the form in which it is stored; entries get what they say about it.
class Store {
 public:
  explicit Store(const LosslessOptions& compression)
      : encoder_(compression), codec_(compression.codec) {}

  // Where nothing is gained the data is stored as it is, so that it can be read in place.
  std::vector<std::byte> packed(std::span<const std::byte> data, EntryHead& entry) {
    std::vector<std::byte> bytes;
    if (codec_ != Codec::none) {
      const auto pieces = encoder_.encode(data);
      if (encoder_.report().packed_bytes < data.size()) {
        entry.codec = static_cast<std::uint8_t>(codec_);
        for (const auto piece : pieces) append(bytes, piece.data(), piece.size());
        return bytes;
      }
    }
    append(bytes, data.data(), data.size());
    return bytes;
  }

 private:
  LosslessEncoder encoder_;
  Codec codec_;
};

EntryHead entry_of(const TensorView& tensor) {
  EntryHead entry;
  entry.dtype = static_cast<std::uint8_t>(tensor.dtype);
  entry.device_kind = static_cast<std::uint8_t>(tensor.device.kind);
  entry.device_index = tensor.device.index;
  entry.flags = tensor.requires_grad ? kRequiresGrad : 0;
  entry.dimensions = static_cast<std::uint16_t>(tensor.shape.size());
  entry.name_bytes = static_cast<std::uint32_t>(tensor.name.size());
  entry.raw_bytes = tensor.data.size();
  return entry;
}

std::uint64_t entry_bytes(const TensorView& tensor) {
  return sizeof(EntryHead) + tensor.shape.size_bytes() + round_up(tensor.name.size(), 8);
}

}  // namespace

bool is_json_object(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' && nlohmann::json::accept(text);
}

std::vector<std::byte> write_tensor_frame(std::span<const TensorView> tensors,
                                          std::string_view metadata,
                                          const LosslessOptions& compression) {
  check(tensors, metadata);
  FrameHead head;
  head.tensors = static_cast<std::uint32_t>(tensors.size());
  head.metadata_bytes = static_cast<std::uint32_t>(metadata.size());
  for (const auto& tensor : tensors) head.directory_bytes += entry_bytes(tensor);
  const auto data_begin =
      round_up(sizeof head + head.directory_bytes + metadata.size(), kFrameAlignment);

  Store store(compression);
  std::vector<std::byte> directory, frame(data_begin);
  for (const auto& tensor : tensors) {
    auto entry = entry_of(tensor);
    const auto stored = store.packed(tensor.data, entry);
    fill_up(frame, kFrameAlignment);
    entry.offset = frame.size();
    entry.stored_bytes = stored.size();
    entry.checksum = XXH3_64bits(stored.data(), stored.size());
    append(frame, stored.data(), stored.size());
    append(directory, &entry, sizeof entry);
    append(directory, tensor.shape.data(), tensor.shape.size_bytes());
    append(directory, tensor.name.data(), tensor.name.size());
    fill_up(directory, 8);
  }
  append(directory, metadata.data(), metadata.size());
  head.frame_bytes = frame.size();
  head.directory_checksum = XXH3_64bits(directory.data(), directory.size());
  head.head_checksum = XXH3_64bits(&head, offsetof(FrameHead, head_checksum));
  std::memcpy(frame.data(), &head, sizeof head);
  if (!directory.empty())
    std::memcpy(frame.data() + sizeof head, directory.data(), directory.size());
  return frame;
}

}  // namespace sinew
