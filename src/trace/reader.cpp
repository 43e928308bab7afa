#include "trace/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <sinew/error.hpp>
#include <sinew/trace.hpp>

namespace sinew::trace {
namespace {

template <class Item>
Item item_at(const std::byte* at) noexcept {
  Item item;
  std::memcpy(&item, at, sizeof item);
  return item;
}

/// From ticks to CLOCK_MONOTONIC, by two moments when both were read.
class Timescale {
 public:
  explicit Timescale(const FileHeader& file) : opened_(file.opened) {
    rate_ = static_cast<double>(file.ns_per_tick) * 0x1p-32;
    const bool usable = file.latest_check == moment_check(file.latest) &&
                        file.latest.ticks > opened_.ticks && file.latest.ns > opened_.ns;
    // Two readings of a clock differ by tens of nanoseconds; over a short time the rate found at
    // the beginning is better.
    if (usable && file.latest.ns - opened_.ns > 1'000'000)
      rate_ = static_cast<double>(file.latest.ns - opened_.ns) /
              static_cast<double>(file.latest.ticks - opened_.ticks);
    if (file.ns_per_tick == std::uint64_t{1} << 32U) rate_ = 1;
  }
  [[nodiscard]] double span(std::uint64_t ticks) const noexcept {
    return static_cast<double>(ticks) * rate_;
  }
  [[nodiscard]] std::uint64_t moment(std::uint64_t ticks) const noexcept {
    const bool after = ticks >= opened_.ticks;
    const auto away = span(after ? ticks - opened_.ticks : opened_.ticks - ticks);
    if (!(away < 0x1p62)) return 0;
    const auto whole = static_cast<std::uint64_t>(away);
    if (after) return opened_.ns + whole;
    return opened_.ns > whole ? opened_.ns - whole : 0;
  }
  [[nodiscard]] std::uint64_t whole_span(std::uint64_t ticks) const noexcept {
    const auto ns = span(ticks);
    return ns < 0x1p63 ? static_cast<std::uint64_t>(ns) : ~std::uint64_t{0};
  }

 private:
  Moment opened_;
  double rate_ = 1;
};

class Reading {
 public:
  explicit Reading(std::span<const std::byte> file) : file_(file) {}

  Trace run() {
    const auto first = read_file_header();
    const Timescale scale(first);
    for (std::size_t at = kBlockBytes; at < file_.size(); at += kBlockBytes) read_block(at, scale);
    if (first.blocks > file_.size() / kBlockBytes)
      trace_.problems.push_back(
          fmt::format("it ends after {} of {} blocks", file_.size() / kBlockBytes, first.blocks));
    read_records(scale);
    return std::move(trace_);
  }

 private:
  struct Pending {
    BlockHeader header;
    const std::byte* payload;
    std::size_t used;
  };

  FileHeader read_file_header() {
    if (file_.size() < kBlockBytes)
      throw Error(Errc::invalid_argument,
                  fmt::format("no trace: {} bytes, less than its first block of {}", file_.size(),
                              kBlockBytes));
    const auto file = item_at<FileHeader>(file_.data() + sizeof(BlockHeader));
    if (std::memcmp(file.magic, kFileMagic, sizeof kFileMagic) != 0)
      throw Error(Errc::invalid_argument, "no trace: it does not begin with SINEWTRC");
    if (file.version != kVersion)
      throw Error(Errc::invalid_argument,
                  fmt::format("a trace of version {}; this program reads version {}", file.version,
                              kVersion));
    const auto block = item_at<BlockHeader>(file_.data());
    if (file.fixed != fixed_check(file) || block.fixed != fixed_check(block) ||
        block.kind != BlockKind::file || file.block_bytes != kBlockBytes ||
        (block.state == BlockState::sealed && !sum_holds(block, 0)))
      throw Error(Errc::invalid_argument, "a trace whose first block is damaged");
    trace_.sealed = block.state == BlockState::sealed;
    trace_.process = file.process;
    trace_.opened_ns = file.opened.ns;
    trace_.opened_real_ns = file.opened_real_ns;
    trace_.latest_ns =
        file.latest_check == moment_check(file.latest) ? file.latest.ns : file.opened.ns;
    for (const auto byte : file.boot) trace_.boot += fmt::format("{:02x}", byte);
    trace_.closed = file.closed == 1;
    trace_.budget_bytes = file.budget_bytes;
    trace_.lost_records = file.lost_records > 0;
    trace_.lost_threads = file.lost_threads;
    return file;
  }

  [[nodiscard]] bool sum_holds(const BlockHeader& header, std::size_t at) const {
    if (header.used > kPayloadBytes || header.used % 8 != 0) return false;
    std::uint64_t sum[2];
    checksum(header, file_.data() + at + sizeof header, sum);
    return sum[0] == header.sum[0] && sum[1] == header.sum[1];
  }

  template <class... Arguments>
  void problem(std::size_t at, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    trace_.problems.push_back(
        fmt::format("block {} at byte {}: {}", at / kBlockBytes, at,
                    fmt::format(text, std::forward<Arguments>(arguments)...)));
  }

  void read_block(std::size_t at, const Timescale& scale) {
    if (file_.size() - at < kBlockBytes) {
      problem(at, "cut off after {} of {} bytes", file_.size() - at, kBlockBytes);
      return;
    }
    const auto header = item_at<BlockHeader>(file_.data() + at);
    if (is_hole(at)) return;
    if (std::memcmp(header.magic, kBlockMagic, sizeof kBlockMagic) != 0 ||
        header.fixed != fixed_check(header) || header.index != at / kBlockBytes ||
        (header.state != BlockState::open && header.state != BlockState::sealed)) {
      problem(at, "its header is damaged");
      return;
    }
    const std::byte* const payload = file_.data() + at + sizeof header;
    auto used = used_bytes(header.kind, payload);
    if (header.state == BlockState::open) {
      trace_.sealed = false;
    } else if (!sum_holds(header, at)) {
      // Records carry a check each, so those that hold are kept; counters do not.
      problem(at, "its checksum does not hold{}",
              header.kind == BlockKind::counters ? "; its counters are left out"
                                                 : "; what is damaged in it is left out");
      if (header.kind == BlockKind::counters) return;
    } else {
      used = header.used;
    }
    take(header, payload, used, scale);
  }

  // Disk space that no block came to.
  [[nodiscard]] bool is_hole(std::size_t at) const {
    for (std::size_t i = 0; i < sizeof(BlockHeader); ++i)
      if (file_[at + i] != std::byte{0}) return false;
    return true;
  }

  void take(const BlockHeader& header, const std::byte* payload, std::size_t used,
            const Timescale& scale) {
    switch (header.kind) {
      case BlockKind::counters:
        for (std::size_t i = 0; i + sizeof(Slot) <= used; i += sizeof(Slot))
          take_slot(header, item_at<Slot>(payload + i), scale);
        break;
      case BlockKind::records:
        pending_.push_back({header, payload, used});
        break;
      case BlockKind::notes:
        take_notes(payload, used);
        break;
      default:
        break;
    }
  }

  void take_slot(const BlockHeader& header, const Slot& slot, const Timescale& scale) {
    auto& places = places_[header.thread];
    if (places.size() <= slot.number) places.resize(std::size_t{slot.number} + 1, kNowhere);
    places[slot.number] = trace_.counters.size();
    Counter counter;
    counter.key = {slot.kind,      slot.dtype,    slot.operation, slot.communicator, slot.bytes,
                   slot.sent,      slot.received, slot.peer,      slot.round,        slot.tag,
                   slot.algorithm, slot.channel,  slot.label,     slot.region};
    if (slot.number == 1 && counter.key == Key{}) {
      counter.key.kind = static_cast<std::uint8_t>(EventKind::call);
      counter.key.operation = kOtherCalls;
    }
    counter.thread = header.thread;
    counter.calls = slot.count;
    counter.sent = slot.count * slot.sent + slot.more_sent;
    counter.received = slot.count * slot.received + slot.more_received;
    counter.total_ns = scale.span(slot.duration);
    counter.shortest_ns = slot.count == 0 ? 0 : scale.span(slot.shortest);
    counter.longest_ns = scale.span(slot.longest);
    counter.waiting_ns = scale.span(slot.waiting);
    counter.in_flight_ns = scale.span(slot.in_flight);
    trace_.counters.push_back(counter);
  }

  void take_notes(const std::byte* payload, std::size_t used) {
    std::size_t at = 0;
    while (at + sizeof(NoteHeader) <= used) {
      const auto note = item_at<NoteHeader>(payload + at);
      at += sizeof note;
      if (note.length > used - at) return;
      auto& text = trace_.notes[{note.kind, note.id}];
      if (note.kind == NoteKind::info && !text.empty())
        text += '\n';
      else
        text.clear();
      text.append(reinterpret_cast<const char*>(payload + at), note.length);
      at += padded(note.length);
    }
  }

  // After all slots, which may come later in the file.
  void read_records(const Timescale& scale) {
    for (const auto& block : pending_) {
      const auto stride = block.header.stride;
      trace_.greatest_stride = std::max(trace_.greatest_stride, stride);
      const auto& places = places_[block.header.thread];
      std::size_t unknown = 0;
      for (std::size_t i = 0; i + sizeof(Record) <= block.used; i += sizeof(Record)) {
        const auto record = item_at<Record>(block.payload + i);
        const auto number = static_cast<std::uint16_t>(record.tail >> 16U);
        if (number >= places.size() || places[number] == kNowhere) {
          ++unknown;
          continue;
        }
        trace_.records.push_back(
            {places[number], scale.moment(record.begin), scale.whole_span(record.duration),
             scale.whole_span(record.waiting), static_cast<std::uint32_t>(record.tail >> 32U),
             static_cast<std::uint32_t>(stride)});
      }
      if (unknown > 0)
        problem(std::size_t{block.header.index} * kBlockBytes,
                "{} records belong to counters that are missing", unknown);
    }
  }

  std::span<const std::byte> file_;
  Trace trace_;
  std::vector<Pending> pending_;
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  std::map<std::uint16_t, std::vector<std::size_t>> places_;  // of a thread's slots, by number
};

}  // namespace

Trace read_trace(std::span<const std::byte> file) { return Reading(file).run(); }

Trace read_trace_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw Error(Errc::system, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  stream.seekg(0, std::ios::end);
  const auto size = stream.tellg();
  std::vector<char> bytes(size > 0 ? static_cast<std::size_t>(size) : 0);
  stream.seekg(0);
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  try {
    return read_trace(std::as_bytes(std::span(bytes)));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace sinew::trace
