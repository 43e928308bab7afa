#include "transport/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

constexpr std::uint32_t kMagic = 0x53696E31;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{1} << 21;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Long slots mean few passes; but all ranks' slots together should stay in the last-level cache.
// Half as long again as a power of two, because a slot of an allreduce has a part for the result,
// too, and calls of a power of two would just not fit.
std::size_t slot_bytes_for(int ranks) {
  constexpr std::size_t kAll = std::size_t{6} << 20, kLeast = std::size_t{128} << 10,
                        kMost = std::size_t{3} << 19;
  const auto each = kAll / static_cast<std::size_t>(ranks) / kLeast * kLeast;
  return std::clamp(each, kLeast, kMost);
}

// So many that a line written again has left the readers' own caches by then; see Board::slots().
std::uint32_t slots_for(int ranks, std::size_t slot_bytes) {
  constexpr std::size_t kAll = std::size_t{8} << 20, kLeast = 2, kMost = 4;
  const auto each = kAll / (static_cast<std::size_t>(ranks) * slot_bytes);
  return static_cast<std::uint32_t>(std::clamp(each, kLeast, kMost));
}

[[noreturn]] void no_memory(std::string_view what, std::size_t bytes, int error) {
  throw Error(Errc::out_of_memory,
              fmt::format("no memory for {} ({}): {}. Fewer ranks, smaller buffers, or a larger "
                          "memory limit of the container would help",
                          what, human_bytes(bytes), std::strerror(error)));
}

}  // namespace

Segment::Segment(int ranks, const SegmentOptions& options) {
  descriptor_ = memfd_create("sinew", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor_ < 0)
    throw Error(Errc::system, fmt::format("memfd_create: {}", std::strerror(errno)));
  // A machine with a small address-space limit still works, with a smaller arena.
  auto wanted = options;
  if (wanted.slot_bytes == 0) wanted.slot_bytes = slot_bytes_for(ranks);
  if (wanted.slots == 0) wanted.slots = slots_for(ranks, wanted.slot_bytes);
  while (true) {
    lay_out(ranks, wanted);
    if (ftruncate(descriptor_, static_cast<off_t>(bytes_)) == 0 && map()) break;
    const int error = errno;
    if (wanted.arena_bytes < (std::size_t{1} << 20)) {
      close(descriptor_);
      no_memory("the shared segment", bytes_, error);
    }
    wanted.arena_bytes /= 4;
  }
  try {
    reserve(base_, lanes_);
  } catch (...) {
    munmap(base_, bytes_);
    close(descriptor_);
    throw;
  }
  // A peer cannot shrink the file under us.
  fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  // The mapping is zero-filled, which is the initial value of everything else in it.
  auto* header = new (base_) SegmentHeader{};
  header->magic = kMagic;
  header->ranks = static_cast<std::uint32_t>(ranks);
  header->options = wanted;
}

Segment::Segment(int descriptor) : descriptor_(descriptor) {
  void* head = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (head == MAP_FAILED) {
    close(descriptor_);
    throw Error(Errc::system,
                fmt::format("cannot map the shared segment: {}", std::strerror(errno)));
  }
  const auto* header = static_cast<const SegmentHeader*>(head);
  const bool ours = header->magic == kMagic;
  const int ranks = static_cast<int>(header->ranks);
  const auto options = header->options;
  munmap(head, kPage);
  if (!ours) {
    close(descriptor_);
    throw Error(Errc::system, "the shared segment was made by another version of Sinew");
  }
  lay_out(ranks, options);
  if (!map()) {
    const int error = errno;
    close(descriptor_);
    no_memory("the shared segment", bytes_, error);
  }
}

Segment::~Segment() {
  munmap(base_, bytes_);
  close(descriptor_);
}

// At a multiple of a huge page, so that arenas can be mapped with huge pages everywhere.
bool Segment::map() noexcept {
  void* room = mmap(nullptr, bytes_ + kHugePage, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  auto* begin = static_cast<std::byte*>(room);
  auto* aligned =
      begin + (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  void* mapped = mmap(aligned, bytes_, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor_, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    munmap(room, bytes_ + kHugePage);
    errno = error;
    return false;
  }
  const auto before = static_cast<std::size_t>(aligned - begin);
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(aligned + round_up(bytes_, kPage), kHugePage - before);
  base_ = aligned;
  return true;
}

void Segment::lay_out(int ranks, const SegmentOptions& options) {
  const auto count = static_cast<std::size_t>(ranks);
  lane_slot_bytes_ = LaneSlot::kHeader + options.lane_slot_bytes;
  status_ = round_up(sizeof(SegmentHeader), kPage);
  flags_ = round_up(status_ + count * sizeof(StatusLine), kPage);
  bells_ = flags_ + count * sizeof(FlagLine);
  slots_ = round_up(bells_ + count * sizeof(BellLine), kPage);
  lanes_ = round_up(slots_ + count * options.slots * options.slot_bytes, kPage);
  arenas_ = round_up(lanes_ + count * count * kLanes * lane_bytes(), kHugePage);
  bytes_ = arenas_ + round_up(count * options.arena_bytes, kPage);
}

std::size_t Segment::lane_bytes() const noexcept {
  return sizeof(LaneHeader) + kLaneDepth * lane_slot_bytes_;
}

LaneHeader& Segment::lane(int from, int to, int channel) const noexcept {
  const auto ranks = static_cast<std::size_t>(this->ranks());
  const auto index =
      (static_cast<std::size_t>(from) * ranks + static_cast<std::size_t>(to)) * kLanes +
      static_cast<std::size_t>(channel);
  return *at<LaneHeader>(lanes_ + index * lane_bytes());
}

LaneSlot& Segment::lane_slot(LaneHeader& lane, std::uint64_t number) const noexcept {
  auto* slots = reinterpret_cast<std::byte*>(&lane) + sizeof(LaneHeader);
  return *reinterpret_cast<LaneSlot*>(slots + (number % kLaneDepth) * lane_slot_bytes_);
}

void Segment::reserve(std::byte* begin, std::size_t bytes) {
  const auto offset = static_cast<off_t>(begin - base_);
  int error = 0;
  do {
    error = posix_fallocate(descriptor_, offset, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error != 0) no_memory("shared memory", bytes, error);
  // Huge pages where they can be had; without, it only runs slower.
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which this libc does not name yet
  if (bytes >= kHugePage) madvise(begin, bytes, kCollapse);
}

void Segment::release(std::byte* begin, std::size_t bytes) noexcept {
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin - base_,
            static_cast<off_t>(bytes));
}

}  // namespace sinew
