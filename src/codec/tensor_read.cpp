#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include <sinew/tensor_frame.hpp>
#include "codec/tensor_form.hpp"

namespace sinew {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Errc::invalid_argument, "tensor frame: " + why);
}

FrameHead read_head(std::span<const std::byte> bytes, const TensorFrameLimits& limits) {
  FrameHead head;
  if (bytes.size() < sizeof head)
    refuse(fmt::format("{} of {} bytes of its head", bytes.size(), sizeof head));
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != kFrameMagic) refuse("these bytes begin otherwise");
  // Before the checksum: a later version may have its head in another form.
  if (head.version != kFrameVersion)
    throw Error(Errc::unsupported,
                fmt::format("tensor frame of version {}; this program reads version {}: update it, "
                            "or write the older version",
                            head.version, kFrameVersion));
  if (head.head_checksum != XXH3_64bits(&head, offsetof(FrameHead, head_checksum)))
    refuse("the checksum of its head does not match");
  if (head.flags != 0 || head.zero[0] != 0 || head.zero[1] != 0)
    refuse("what version 1 leaves zero is not");
  if (head.frame_bytes != bytes.size())
    refuse(fmt::format("{} bytes are there of {}", bytes.size(), head.frame_bytes));
  if (head.metadata_bytes > limits.metadata_bytes)
    refuse(fmt::format("metadata of {} bytes; at most {} are accepted", head.metadata_bytes,
                       limits.metadata_bytes));
  const auto rest = bytes.size() - sizeof head;
  if (head.metadata_bytes > rest || head.directory_bytes > rest - head.metadata_bytes)
    refuse(fmt::format("a directory of {} bytes in {}", head.directory_bytes, rest));
  if (head.directory_bytes / sizeof(EntryHead) < head.tensors)
    refuse(
        fmt::format("{} tensors in a directory of {} bytes", head.tensors, head.directory_bytes));
  return head;
}

// Takes from the front of the directory, never more than it has.
class Directory {
 public:
  explicit Directory(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > rest_.size()) refuse("an entry is cut off");
    const auto taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

// Reads the entries of one frame; data must come in their order, without overlap.
class EntryReader {
 public:
  EntryReader(std::span<const std::byte> frame, std::uint64_t data_begin,
              const TensorFrameLimits& limits)
      : frame_(frame), end_(data_begin), limits_(limits) {}

  StoredTensor read(Directory& directory) {
    EntryHead entry;
    std::memcpy(&entry, directory.take(sizeof entry).data(), sizeof entry);
    StoredTensor tensor;
    if (entry.dimensions > kMostDimensions)
      refuse(fmt::format("a tensor of {} dimensions", entry.dimensions));
    const auto shape = directory.take(entry.dimensions * sizeof(std::uint64_t));
    const auto name = directory.take(round_up(entry.name_bytes, 8));
    tensor.name = {reinterpret_cast<const char*>(name.data()), entry.name_bytes};
    tensor.shape.resize(entry.dimensions);
    if (!shape.empty()) std::memcpy(tensor.shape.data(), shape.data(), shape.size());
    if (std::any_of(name.begin() + entry.name_bytes, name.end(),
                    [](std::byte b) { return b != std::byte{}; }))
      refuse("a name is not filled up with zeros");
    read_kind(entry, tensor);
    check_size(entry, tensor);
    place(entry, tensor);
    return tensor;
  }
  // A frame without tensors is filled up as if one followed.
  void finish(bool has_tensors) const {
    const auto end = has_tensors ? end_ : round_up(end_, kFrameAlignment);
    if (end != frame_.size()) refuse("there are bytes after its end");
    check_zeros(end, "its end");
  }

 private:
  static void read_kind(const EntryHead& entry, StoredTensor& tensor) {
    if (entry.dtype >= kDTypes.size() || entry.codec >= std::size(kCodecs) ||
        entry.device_kind > static_cast<std::uint8_t>(Device::Kind::other) ||
        (entry.flags & ~kRequiresGrad) != 0 || entry.zero != 0)
      refuse(fmt::format("tensor '{}' has a type, codec, device or flag that is not known",
                         tensor.name));
    tensor.dtype = static_cast<DType>(entry.dtype);
    tensor.codec = static_cast<Codec>(entry.codec);
    tensor.device = {static_cast<Device::Kind>(entry.device_kind), entry.device_index};
    tensor.requires_grad = (entry.flags & kRequiresGrad) != 0;
    tensor.bytes = entry.raw_bytes;
  }

  void check_size(const EntryHead& entry, const StoredTensor& tensor) const {
    std::uint64_t bytes = size_of(tensor.dtype);
    for (const auto extent : tensor.shape)
      if (__builtin_mul_overflow(bytes, extent, &bytes))
        refuse(fmt::format("tensor '{}' has more elements than there are addresses", tensor.name));
    if (bytes != entry.raw_bytes)
      refuse(fmt::format("tensor '{}' says {} bytes, its shape {}", tensor.name, entry.raw_bytes,
                         bytes));
    if (bytes > limits_.unpacked_bytes)
      refuse(fmt::format("tensor '{}' has {} bytes unpacked; at most {} are accepted", tensor.name,
                         bytes, limits_.unpacked_bytes));
    if (tensor.codec == Codec::none && entry.stored_bytes != bytes)
      refuse(fmt::format("tensor '{}' is stored plainly in {} bytes, but has {}", tensor.name,
                         entry.stored_bytes, bytes));
  }

  void place(const EntryHead& entry, StoredTensor& tensor) {
    const auto begin = round_up(end_, kFrameAlignment);
    if (entry.offset != begin || begin > frame_.size() ||
        entry.stored_bytes > frame_.size() - begin)
      refuse(fmt::format("tensor '{}' lies at {} with {} bytes; its place is {} of {}", tensor.name,
                         entry.offset, entry.stored_bytes, begin, frame_.size()));
    check_zeros(begin, tensor.name);
    tensor.stored = frame_.subspan(begin, entry.stored_bytes);
    end_ = begin + entry.stored_bytes;
    if (limits_.verify_data &&
        XXH3_64bits(tensor.stored.data(), tensor.stored.size()) != entry.checksum)
      refuse(fmt::format("the checksum of tensor '{}' does not match", tensor.name));
  }

  void check_zeros(std::uint64_t until, std::string_view before) const {
    const auto gap = frame_.subspan(end_, until - end_);
    if (std::any_of(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{}; }))
      refuse(fmt::format("what lies before '{}' is not zero", before));
  }

  std::span<const std::byte> frame_;
  std::uint64_t end_;  // of what was read so far
  const TensorFrameLimits& limits_;
};

void check_names(std::span<const StoredTensor> tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) refuse(fmt::format("two tensors are named '{}'", *twice));
}

}  // namespace

TensorFrame::TensorFrame(std::span<const std::byte> bytes, const TensorFrameLimits& limits) {
  const auto head = read_head(bytes, limits);
  const auto listed = bytes.subspan(sizeof head, head.directory_bytes + head.metadata_bytes);
  if (XXH3_64bits(listed.data(), listed.size()) != head.directory_checksum)
    refuse("the checksum of its directory does not match");
  metadata_ = {reinterpret_cast<const char*>(listed.data() + head.directory_bytes),
               head.metadata_bytes};
  if (!metadata_.empty() && !is_json_object(metadata_)) refuse("its metadata is no JSON object");
  Directory directory(listed.first(head.directory_bytes));
  EntryReader reader(bytes, sizeof head + listed.size(), limits);
  tensors_.reserve(head.tensors);
  for (std::uint32_t i = 0; i < head.tensors; ++i) tensors_.push_back(reader.read(directory));
  if (!directory.empty()) refuse("the directory has bytes after its last entry");
  reader.finish(!tensors_.empty());
  check_names(tensors_);
}

const StoredTensor* TensorFrame::find(std::string_view name) const noexcept {
  for (const auto& tensor : tensors_)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

void StoredTensor::check_view(DType wanted, std::size_t alignment) const {
  if (wanted != dtype)
    refuse(fmt::format("tensor '{}' is {}, not {}", name, sinew::name(dtype), sinew::name(wanted)));
  if (codec != Codec::none)
    refuse(
        fmt::format("tensor '{}' is stored as {}; copy_to() unpacks it", name, sinew::name(codec)));
  if (reinterpret_cast<std::uintptr_t>(stored.data()) % alignment != 0)
    refuse(
        fmt::format("the frame lies at an odd address for {}; put it at a multiple of 64, or "
                    "use copy_to()",
                    sinew::name(dtype)));
}

void StoredTensor::copy_to(std::span<std::byte> into) const {
  if (into.size() != bytes)
    refuse(fmt::format("tensor '{}' has {} bytes, the room {}", name, bytes, into.size()));
  if (codec != Codec::none) return unpack(stored, into);
  if (!into.empty()) std::memcpy(into.data(), stored.data(), into.size());
}

}  // namespace sinew
