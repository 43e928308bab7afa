#include "trace/writer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <sinew/error.hpp>

namespace sinew::trace {
namespace {

constexpr std::size_t kExtentBlocks = 16;  // taken from the file system at a time
constexpr std::size_t kLeastBlocks = 3;    // file, notes, counters: less would tell nothing
// Ready before a block of records is given out, so that a disk that is full costs records and not
// the counters of calls, threads and names that are new after that.
constexpr std::size_t kSpareBlocks = 8;
constexpr std::uint64_t kCounterBytes = std::uint64_t{1} << 30U;  // address space besides records

[[noreturn]] void refuse(const std::string& what, const std::string& path) {
  throw Error(Errc::system, what + " " + path + ": " + std::strerror(errno));
}

void read_boot_id(std::uint8_t (&boot)[16]) noexcept {
  const int file = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char text[64] = {};
  const auto got = ::read(file, text, sizeof text - 1);
  ::close(file);
  std::size_t digits = 0;
  for (ssize_t i = 0; i < got && digits < 32; ++i) {
    const char c = text[i];
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (value < 0) continue;
    boot[digits / 2] = static_cast<std::uint8_t>(boot[digits / 2] * 16 + value);
    ++digits;
  }
}

void add_relaxed(std::uint64_t& counter) noexcept {
  std::atomic_ref(counter).fetch_add(1, std::memory_order_relaxed);
}

/// Takes disk space for these blocks and gives back how far it came; errno says why not further.
/// Written rather than set aside (fallocate), because the first store to a page that was only set
/// aside takes file systems three times as long.
std::size_t write_zeros(int file, std::size_t begin, std::size_t end) noexcept {
  static const std::byte zeros[kBlockBytes] = {};
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0) limit.rlim_cur = RLIM_INFINITY;
  for (auto at = begin; at < end;) {
    // Past the limit the process would be killed by a signal, and it is not ours.
    if ((at + 1) * kBlockBytes > limit.rlim_cur) {
      errno = EFBIG;
      return at;
    }
    const auto wrote = ::pwrite(file, zeros, sizeof zeros, static_cast<off_t>(at * kBlockBytes));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote != static_cast<ssize_t>(sizeof zeros)) {
      if (wrote >= 0) errno = ENOSPC;
      return at;
    }
    ++at;
  }
  return end;
}

bool is_block(const std::byte* at) noexcept {
  BlockHeader header;
  std::memcpy(&header, at, sizeof header);
  return std::memcmp(header.magic, kBlockMagic, sizeof kBlockMagic) == 0 &&
         header.fixed == fixed_check(header);
}

bool is_open(const std::byte* at) noexcept {
  return is_block(at) && at[offsetof(BlockHeader, state)] == std::byte{0};
}

/// Checksums what is not sealed yet and cuts off what no block came to. True: the file was open.
bool seal_blocks(int file) noexcept {
  struct stat status {};
  if (::fstat(file, &status) != 0) return false;
  const auto blocks = static_cast<std::size_t>(status.st_size) / kBlockBytes;
  if (blocks == 0) return false;
  void* const base =
      ::mmap(nullptr, blocks * kBlockBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (base == MAP_FAILED) return false;
  auto* const bytes = static_cast<std::byte*>(base);
  std::size_t last = blocks;
  while (last > 0 && !is_block(bytes + (last - 1) * kBlockBytes)) --last;
  const bool was_open = last > 0 && is_open(bytes);
  if (was_open) {
    reinterpret_cast<FileHeader*>(bytes + sizeof(BlockHeader))->blocks = last;
    for (std::size_t i = 0; i < last; ++i)
      if (is_open(bytes + i * kBlockBytes)) seal(bytes + i * kBlockBytes);
  }
  ::munmap(base, blocks * kBlockBytes);
  // Failing leaves zeros at the end, which readers skip.
  [[maybe_unused]] const int cut =
      was_open ? ::ftruncate(file, static_cast<off_t>(last * kBlockBytes)) : 0;
  return was_open;
}

}  // namespace

std::uint64_t stride_of(std::uint64_t block, std::uint64_t budget) noexcept {
  if (block >= budget) return 0;
  const auto halvings = std::bit_width(budget / (budget - block)) - 1;
  return std::uint64_t{1} << (4 * std::min<std::uint64_t>(halvings, 7));
}

Writer::Writer(const WriterOptions& options) : options_(options) {
  file_ = ::open(options.path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) refuse("cannot make the trace", options.path);
  most_blocks_ = (options.budget_bytes + kCounterBytes) / kBlockBytes;
  // The whole range at once: blocks never move. Pages exist only as far as grow() has come.
  void* const base = ::mmap(nullptr, most_blocks_ * kBlockBytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (base == MAP_FAILED) {
    ::close(file_);
    refuse("cannot map the trace", options.path);
  }
  base_ = static_cast<std::byte*>(base);
  ::madvise(base_, most_blocks_ * kBlockBytes, MADV_DONTFORK);  // a child writes no trace of ours
  if (block(BlockKind::file, 0, 0, 0) == nullptr || ready_blocks_ < kLeastBlocks) {
    ::munmap(base_, most_blocks_ * kBlockBytes);
    ::close(file_);
    ::unlink(options.path.c_str());
    errno = full_;
    refuse("no room for the trace", options.path);
  }
  auto& file = header();
  std::memcpy(file.magic, kFileMagic, sizeof kFileMagic);
  file.version = kVersion;
  file.block_bytes = kBlockBytes;
  file.process = static_cast<std::uint64_t>(::getpid());
  file.budget_bytes = options.budget_bytes;
  read_boot_id(file.boot);
  measure_rate(file);
  file.opened_real_ns = clock_ns(CLOCK_REALTIME);
  file.fixed = fixed_check(file);
  keep_time();
}

Writer::~Writer() {
  close();
  ::close(file_);
}

Moment Writer::moment() const noexcept {
  const auto before = options_.ticks();
  if (options_.ticks == options_.monotonic) return {before, before};
  const auto ns = options_.monotonic();
  return {before + (options_.ticks() - before) / 2, ns};
}

// Good to a part in a thousand, for traces that end before keep_time() was called again.
void Writer::measure_rate(FileHeader& header) const noexcept {
  constexpr std::uint64_t kLongNs = 100'000;
  header.opened = moment();
  header.ns_per_tick = std::uint64_t{1} << 32U;
  if (options_.ticks == options_.monotonic) return;
  Moment now = header.opened;
  while (now.ns - header.opened.ns < kLongNs) now = moment();
  const auto ticks = now.ticks - header.opened.ticks;
  if (ticks > 0)
    header.ns_per_tick = static_cast<std::uint64_t>(static_cast<double>(now.ns - header.opened.ns) /
                                                    static_cast<double>(ticks) * 0x1p32);
}

// Asks for disk space and pages before anyone writes: a mapping whose disk is full answers a store
// with SIGBUS.
bool Writer::grow(std::size_t blocks) noexcept {
  const std::lock_guard lock(growing_);
  const auto ready = ready_blocks_.load(std::memory_order_relaxed);
  if (blocks <= ready) return true;
  // Once full it stays so: asking at every call would cost the program more than records are worth.
  if (blocks > most_blocks_ || full_.load(std::memory_order_relaxed) != 0) return false;
  const int errno_of_caller = errno;
  const auto end = std::min(most_blocks_, std::max(blocks, ready + kExtentBlocks));
  const auto reached = write_zeros(file_, ready, end);
  if (reached < end) {
    full_.store(errno, std::memory_order_relaxed);  // read by whoever was refused a block
    // The beginning of a block would read as a file that was cut off; failing leaves just that.
    [[maybe_unused]] const int cut = ::ftruncate(file_, static_cast<off_t>(reached * kBlockBytes));
  }
#ifdef MADV_POPULATE_WRITE
  // Only saves faults.
  if (reached > ready)
    ::madvise(base_ + ready * kBlockBytes, (reached - ready) * kBlockBytes, MADV_POPULATE_WRITE);
#endif
  ready_blocks_.store(reached, std::memory_order_release);  // pairs with the acquire in block()
  if (ready > 0) keep_time();
  errno = errno_of_caller;
  return blocks <= reached;
}

std::byte* Writer::block(BlockKind kind, std::uint16_t thread, std::uint32_t first,
                         std::uint64_t stride) noexcept {
  if (closed_.load(std::memory_order_acquire)) return nullptr;  // pairs with close()
  const auto index = next_block_.fetch_add(1, std::memory_order_relaxed);
  const auto needed = index + 1 + (kind == BlockKind::records ? kSpareBlocks : 0);
  if (needed > ready_blocks_.load(std::memory_order_acquire) && !grow(needed)) {
    // Given back if nobody took a later one; else it stays a hole, which readers skip.
    auto taken = index + 1;
    next_block_.compare_exchange_strong(taken, index, std::memory_order_relaxed);
    return nullptr;
  }
  std::byte* const at = base_ + index * kBlockBytes;
  BlockHeader header{};
  std::memcpy(header.magic, kBlockMagic, sizeof kBlockMagic);
  header.kind = kind;
  header.thread = thread;
  header.index = static_cast<std::uint32_t>(index);
  header.first = first;
  header.stride = stride;
  header.fixed = fixed_check(header);
  std::memcpy(at, &header, sizeof header);
  return at;
}

std::byte* Writer::counters_block(std::uint16_t thread, std::uint32_t first) noexcept {
  std::byte* const at = block(BlockKind::counters, thread, first, 0);
  if (at == nullptr) note_full();
  return at;
}

std::byte* Writer::records_block(std::uint16_t thread) noexcept {
  const auto budget = std::max<std::uint64_t>(options_.budget_bytes / kBlockBytes, 4);
  const auto stride = stride_of(record_blocks_.fetch_add(1, std::memory_order_relaxed), budget);
  std::byte* const at = stride == 0 ? nullptr : block(BlockKind::records, thread, 0, stride);
  if (at == nullptr) {
    add_relaxed(header().lost_records);
    note_full();
  }
  return at;
}

// Into the trace and at once: whatever ends the process, its reader knows why something is missing.
void Writer::note_full() noexcept {
  const int reason = full_.load(std::memory_order_relaxed);
  if (reason == 0 || noted_full_.exchange(true, std::memory_order_relaxed)) return;
  note(NoteKind::info, 0, std::string("no_room=") + std::strerror(reason));
}

void Writer::lost_thread() noexcept { add_relaxed(header().lost_threads); }

void Writer::note(NoteKind kind, std::uint64_t id, std::string_view text) noexcept {
  const std::lock_guard lock(noting_);
  text = text.substr(0, kLongestNote);
  const auto bytes = sizeof(NoteHeader) + padded(text.size());
  if (notes_used_ + bytes > kPayloadBytes) {
    std::byte* const fresh = block(BlockKind::notes, 0, 0, 0);
    if (fresh == nullptr) return;
    notes_ = fresh + sizeof(BlockHeader);
    notes_used_ = 0;
  }
  std::byte* const at = notes_ + notes_used_;
  std::memcpy(at + sizeof(NoteHeader), text.data(), text.size());
  NoteHeader note{kind, 0, 0, static_cast<std::uint32_t>(text.size()), id};
  note.check = check_of(note, at + sizeof note);
  std::memcpy(at, &note, sizeof note);
  notes_used_ += bytes;
}

void Writer::keep_time() noexcept {
  const Moment now = moment();
  auto& file = header();
  file.latest_check = 0;  // a crash in between leaves a check that fails, not a wrong rate
  file.latest = now;
  file.latest_check = moment_check(now);
}

void Writer::close(bool in_order) noexcept {
  if (closed_.exchange(true, std::memory_order_acq_rel)) return;  // pairs with block()
  keep_time();
  header().closed = in_order ? 1 : 0;
  // Other threads may still write, and a checksum must not change under them: from here on their
  // addresses lead to memory that nobody reads.
  void* const nowhere = ::mmap(base_, most_blocks_ * kBlockBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (nowhere != MAP_FAILED) seal_blocks(file_);
}

std::string why_no_room(const std::string& folder) {
  auto path = folder + "/.room-XXXXXX";
  const int file = ::mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return errno == ENOSPC || errno == EDQUOT ? std::strerror(errno) : "";
  const bool fits = write_zeros(file, 0, kLeastBlocks) == kLeastBlocks;
  const int reason = errno;
  ::close(file);
  ::unlink(path.c_str());
  return fits ? "" : std::strerror(reason);
}

bool seal_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) refuse("cannot open", path);
  const bool was_open = seal_blocks(file);
  ::close(file);
  return was_open;
}

}  // namespace sinew::trace
