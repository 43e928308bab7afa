// How the control segment is laid out. Shared by both ends and by nobody else.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "measure/control.hpp"

namespace sinew::bench::detail {

inline constexpr std::uint32_t kMagic = 0x53424333;  // "SBC3": changes with the layout
inline constexpr std::size_t kNotesBytes = std::size_t{128} * 1024;
inline constexpr std::size_t kTextBytes = 512;

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// A Case without its vectors: the counts follow the segment's fixed part.
struct PostedCase {
  Collective collective{};
  bool in_place = false;
  bool rewrite = false;
  std::int32_t root = 0;
  std::uint32_t element_bytes = 0;
  std::int32_t round = 0;
  std::uint64_t bytes = 0;
  std::uint64_t counts = 0;
  Limits limits;
  std::array<char, kTextBytes> options{};
};

struct alignas(128) RankLine {
  std::atomic<std::int32_t> pid{0};
  std::atomic<RankState> state{RankState::absent};
  Report report;
  std::array<char, kTextBytes> message{};
  std::atomic<std::uint32_t> notes_bytes{0};  // released after the notes are written
  std::array<char, kNotesBytes> notes{};      // what it published; untouched pages cost nothing
};

/// Before each key and value in RankLine::notes.
struct NoteHead {
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;
};

/// Followed by RankLine[ranks], Stamp[ranks][kMaxSamples], counts[ranks * ranks].
struct Segment {
  std::uint32_t magic = kMagic;
  std::int32_t ranks = 0;
  std::int32_t cores = 0;  // of the parent: a launcher may have bound the ranks to one core each
  std::int32_t parent = 0;
  PostedCase posted;
  alignas(128) std::atomic<std::uint32_t> command{0};  // bumped by post and dismiss
  std::atomic<bool> dismissed{false};
  alignas(128) std::atomic<std::uint32_t> news{0};  // bumped by ranks for the parent
  alignas(128) std::atomic<std::uint32_t> arrived{0};
  alignas(128) std::atomic<std::uint32_t> generation{0};
  std::atomic<std::uint32_t> sleepers{0};
  alignas(128) std::array<std::atomic<std::uint32_t>, 2> agreed{};
};

constexpr std::size_t lines_offset() noexcept {
  return (sizeof(Segment) + alignof(RankLine) - 1) / alignof(RankLine) * alignof(RankLine);
}
constexpr std::size_t stamps_offset(std::size_t ranks) noexcept {
  return lines_offset() + ranks * sizeof(RankLine);
}
constexpr std::size_t counts_offset(std::size_t ranks) noexcept {
  return stamps_offset(ranks) + ranks * kMaxSamples * sizeof(Stamp);
}
constexpr std::size_t segment_bytes(std::size_t ranks) noexcept {
  return counts_offset(ranks) + ranks * ranks * sizeof(std::uint64_t);
}

/// Copies as much as fits, always terminated.
void copy_text(std::array<char, kTextBytes>& to, std::string_view from) noexcept;

}  // namespace sinew::bench::detail
