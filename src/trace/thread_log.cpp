#include "trace/thread_log.hpp"

#include <bit>
#include <cstring>
#include <utility>

namespace sinew::trace {
namespace {

constexpr std::size_t kIndexEntries = std::bit_ceil(ThreadLog::kMostKeys * 2);

std::uint64_t hash_of(const Key& key) noexcept {
  const auto mix = [](std::uint64_t hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    return hash ^ hash >> 32U;
  };
  std::uint64_t hash = mix(key.kind, key.operation | std::uint64_t{key.communicator} << 16U);
  hash = mix(hash, key.bytes);
  hash = mix(hash, key.sent ^ std::rotl(key.received, 32));
  hash = mix(hash, static_cast<std::uint32_t>(key.peer) | std::uint64_t{key.round} << 32U);
  hash = mix(hash, key.tag);
  return mix(hash, key.algorithm ^ key.dtype ^ std::uint64_t{key.channel} << 8U ^
                       std::uint64_t{key.label} << 16U ^ std::uint64_t{key.region} << 24U);
}

Key key_of(const Slot& slot) noexcept {
  return {slot.kind,      slot.dtype,    slot.operation, slot.communicator, slot.bytes,
          slot.sent,      slot.received, slot.peer,      slot.round,        slot.tag,
          slot.algorithm, slot.channel,  slot.label,     slot.region};
}

Slot slot_of(const Key& key, std::size_t number) noexcept {
  Slot slot{};
  slot.kind = key.kind;
  slot.dtype = key.dtype;
  slot.operation = key.operation;
  slot.communicator = key.communicator;
  slot.bytes = key.bytes;
  slot.sent = key.sent;
  slot.received = key.received;
  slot.peer = key.peer;
  slot.round = key.round;
  slot.tag = key.tag;
  slot.algorithm = key.algorithm;
  slot.channel = key.channel;
  slot.label = key.label;
  slot.region = key.region;
  slot.number = static_cast<std::uint16_t>(number);
  slot.check = check_of(slot);
  slot.shortest = ~std::uint64_t{0};
  return slot;
}

}  // namespace

std::uint64_t size_class(std::uint64_t bytes) noexcept {
  if (bytes <= 4) return bytes;
  const auto quarter = std::bit_floor(bytes - 1) / 4;
  return quarter == 0 ? bytes : (bytes + quarter - 1) / quarter * quarter;
}

ThreadLog::ThreadLog(Writer& writer)
    : thread_(writer.next_thread()), writer_(writer), index_(kIndexEntries) {}

ThreadLog::Found ThreadLog::find(const Key& key) noexcept {
  if (Slot* const slot = lookup(key, kMostKeys * 3 / 4)) return {slot, true};
  Key coarse = key;
  coarse.bytes = size_class(key.bytes);
  coarse.sent = coarse.received = 0;
  coarse.peer = -1;
  coarse.tag = coarse.algorithm = 0;
  coarse.round = 0;
  if (Slot* const slot = lookup(coarse, kMostKeys - 1)) return {slot, false};
  Key routine;
  routine.kind = key.kind;
  routine.operation = key.operation;
  if (Slot* const slot = lookup(routine, kMostKeys)) return {slot, false};
  return {index_[0], false};  // never empty: see create()
}

// The slot of a key, made if there are fewer than `most`. Null: full.
Slot* ThreadLog::lookup(const Key& key, std::size_t most) noexcept {
  auto at = hash_of(key) % (kIndexEntries - 1) + 1;  // place 0 is for what fits nowhere
  for (;; at = at % (kIndexEntries - 1) + 1) {
    Slot*& entry = index_[at];
    if (entry != nullptr && key_of(*entry) == key) return entry;
    if (entry != nullptr) continue;
    if (keys_ >= most) return nullptr;
    return entry = create(key);
  }
}

Slot* ThreadLog::create(const Key& key) noexcept {
  if (index_[0] == nullptr) {
    homeless_ = slot_of({}, 1);
    index_[0] = &homeless_;
    if (Slot* const other = create({})) index_[0] = other;
  }
  if (slots_used_ == kSlotsPerBlock) {
    std::byte* const block = writer_.counters_block(thread_, static_cast<std::uint32_t>(keys_));
    if (block == nullptr) {
      if (keys_ == 0 && !std::exchange(lost_, true)) writer_.lost_thread();
      return nullptr;
    }
    slots_ = reinterpret_cast<Slot*>(block + sizeof(BlockHeader));
    slots_used_ = 0;
  }
  Slot* const slot = slots_ + slots_used_++;
  *slot = slot_of(key, ++keys_);
  return slot;
}

void ThreadLog::append_late(const Slot& slot, std::uint64_t begin, std::uint64_t duration,
                            std::uint64_t waiting, std::uint32_t sequence) noexcept {
  if (make_room(sequence)) write(slot, begin, duration, waiting, sequence);
}

// Asked at the end of a block or, while records are sampled, for every one of them.
bool ThreadLog::make_room(std::uint32_t sequence) noexcept {
  if ((sequence & mask_) != 0) return false;
  if (next_ == block_end_ && !refill()) return false;
  end_ = mask_ == 0 ? block_end_ : next_;
  if ((sequence & mask_) != 0) return false;
  if (mask_ != 0) end_ = next_ + 1;
  return true;
}

bool ThreadLog::refill() noexcept {
  std::byte* const block = writer_.records_block(thread_);
  if (block == nullptr) {
    mask_ = ~std::uint32_t{0};  // asks again in four thousand million calls
    return false;
  }
  BlockHeader header;
  std::memcpy(&header, block, sizeof header);
  mask_ = static_cast<std::uint32_t>(header.stride - 1);
  next_ = reinterpret_cast<Record*>(block + sizeof header);
  block_end_ = next_ + kRecordsPerBlock;
  return true;
}

}  // namespace sinew::trace
