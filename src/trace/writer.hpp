// Writes a trace file through a shared mapping, so that what is written stays when the process
// dies. Threads take whole blocks; nothing is locked but growing the file and adding a note.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "trace/clock.hpp"
#include "trace/format.hpp"

namespace sinew::trace {

struct WriterOptions {
  std::string path;
  std::uint64_t budget_bytes = 64U << 20U;       // of records; counters are always kept
  std::uint64_t (*ticks)() = &monotonic_ns;      // the clock of begin and duration
  std::uint64_t (*monotonic)() = &monotonic_ns;  // what ticks are translated to
};

class Writer {
 public:
  /// Throws Error{system} when the file cannot be made.
  explicit Writer(const WriterOptions& options);
  /// Closes. Its addresses stay valid to the end of the process, for threads that still write.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return options_.path; }

  /// A fresh block of zeros with its header. Null: there is no room, or the file is closed.
  std::byte* counters_block(std::uint16_t thread, std::uint32_t first) noexcept;
  std::byte* records_block(std::uint16_t thread) noexcept;
  /// Numbers from 0 for threads that write.
  std::uint16_t next_thread() noexcept { return threads_.fetch_add(1, std::memory_order_relaxed); }
  void lost_thread() noexcept;

  /// Text that explains the numbers; cut at kLongestNote.
  void note(NoteKind kind, std::uint64_t id, std::string_view text) noexcept;
  /// Reads both clocks once more, so that a crash leaves an exact rate.
  void keep_time() noexcept;
  /// Checksums every block and cuts the file to its length. Later writes are lost. `in_order`: the
  /// process came to the end it was meant to come to.
  void close(bool in_order = true) noexcept;

 private:
  std::byte* block(BlockKind kind, std::uint16_t thread, std::uint32_t first,
                   std::uint64_t stride) noexcept;
  bool grow(std::size_t blocks) noexcept;
  void note_full() noexcept;
  [[nodiscard]] Moment moment() const noexcept;
  void measure_rate(FileHeader& header) const noexcept;
  [[nodiscard]] FileHeader& header() const noexcept {
    return *reinterpret_cast<FileHeader*>(base_ + sizeof(BlockHeader));
  }

  WriterOptions options_;
  int file_ = -1;
  std::byte* base_ = nullptr;
  std::size_t most_blocks_ = 0;
  std::atomic<std::size_t> next_block_{0};
  std::atomic<std::size_t> ready_blocks_{0};  // with disk space and pages
  std::atomic<int> full_{0};                  // errno of what kept the file from growing
  std::atomic<bool> noted_full_{false};
  std::atomic<std::uint64_t> record_blocks_{0};
  std::atomic<std::uint16_t> threads_{0};
  std::atomic<bool> closed_{false};
  std::mutex growing_;
  std::mutex noting_;
  std::byte* notes_ = nullptr;
  std::size_t notes_used_ = kPayloadBytes;
};

/// The stride of the n-th of `budget` blocks of records: the first half keeps every record, each
/// half of what is left then one of sixteen times as many. 0: nothing is left.
std::uint64_t stride_of(std::uint64_t block, std::uint64_t budget) noexcept;

/// Why a folder has no room for a trace, such as "No space left on device". "": it has, or
/// something else is wrong with it, which making a trace will tell.
std::string why_no_room(const std::string& folder);

/// Checksums the file of a process that died, so that later damage shows. True: it was open.
bool seal_file(const std::string& path);

}  // namespace sinew::trace
