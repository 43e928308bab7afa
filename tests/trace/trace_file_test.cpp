// The trace file: what is written comes back, also after a crash, a cut and any flipped byte.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <thread>

#include <sinew/error.hpp>
#include "support/program.hpp"
#include "trace/profile.hpp"
#include "trace/reader.hpp"
#include "trace/recorder.hpp"

namespace sinew::trace {
namespace {

using Bytes = std::vector<char>;

class TraceFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-trace-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name = "a.trace") const {
    return folder_ + "/" + name;
  }
  std::string folder_;
};

Event event_of(std::uint64_t bytes, std::uint32_t sequence) {
  Event event;
  event.kind = EventKind::send;
  event.communicator = 7;
  event.sequence = sequence;
  event.peer = static_cast<int>(bytes % 3);
  event.bytes = bytes;
  event.begin_ns = 1000 + sequence * 100;
  event.end_ns = event.begin_ns + bytes + 1;
  event.waiting_ns = bytes / 2;
  return event;
}

Bytes bytes_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Trace read(const Bytes& bytes) { return read_trace(std::as_bytes(std::span(bytes))); }

std::uint64_t calls_in(const Trace& trace) {
  return std::accumulate(trace.counters.begin(), trace.counters.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Counter& c) { return sum + c.calls; });
}

/// A small file with all kinds of blocks.
Bytes small_file(const std::string& path) {
  {
    Recorder recorder({.path = path});
    recorder.writer().note(NoteKind::info, 0, "rank=3");
    recorder.writer().note(NoteKind::info, 0, "size=4");
    recorder.writer().note(NoteKind::routine, 12, "MPI_Send");
    for (std::uint32_t i = 0; i < 300; ++i) recorder.on_event(event_of(i % 10, i));
  }
  return bytes_of(path);
}

TEST_F(TraceFile, gives_back_every_call_note_and_time) {
  const auto trace = read(small_file(path()));
  EXPECT_TRUE(trace.closed);
  EXPECT_TRUE(trace.sealed);
  EXPECT_TRUE(trace.problems.empty());
  EXPECT_EQ(trace.notes.at({NoteKind::info, 0}), "rank=3\nsize=4");
  EXPECT_EQ(trace.notes.at({NoteKind::routine, 12}), "MPI_Send");
  ASSERT_EQ(trace.counters.size(), 11U);  // the first is for what fits nowhere
  EXPECT_EQ(trace.counters[0].calls, 0U);
  for (std::size_t i = 1; i < 11; ++i) {
    const auto& counter = trace.counters[i];
    const auto bytes = i - 1;
    EXPECT_EQ(counter.calls, 30U);
    EXPECT_EQ(counter.key.bytes, bytes);
    EXPECT_EQ(counter.sent, 30 * bytes);
    EXPECT_EQ(counter.received, 0U);
    EXPECT_EQ(counter.total_ns, 30.0 * static_cast<double>(bytes + 1));
    EXPECT_EQ(counter.shortest_ns, static_cast<double>(bytes + 1));
    EXPECT_EQ(counter.longest_ns, static_cast<double>(bytes + 1));
    EXPECT_EQ(counter.waiting_ns, 30.0 * static_cast<double>(bytes / 2));
  }
  ASSERT_EQ(trace.records.size(), 300U);
  for (std::uint32_t i = 0; i < 300; ++i) {
    EXPECT_EQ(trace.records[i].sequence, i);
    EXPECT_EQ(trace.records[i].begin_ns, 1000 + i * 100);
    EXPECT_EQ(trace.records[i].duration_ns, i % 10 + 1);
    EXPECT_EQ(trace.counters[trace.records[i].counter].key.bytes, i % 10);
  }
}

TEST_F(TraceFile, past_its_budget_counters_stay_exact_and_records_are_thinned_out) {
  constexpr std::uint32_t kCalls = 200'000;
  constexpr std::uint64_t kBudget = 64 * kBlockBytes;
  {
    Recorder recorder({.path = path(), .budget_bytes = kBudget});
    for (std::uint32_t i = 0; i < kCalls; ++i) recorder.on_event(event_of(i % 10, i));
  }
  const auto trace = read_trace_file(path());
  EXPECT_EQ(calls_in(trace), kCalls);
  EXPECT_TRUE(trace.problems.empty());
  EXPECT_GE(trace.greatest_stride, 256U);
  EXPECT_LT(trace.records.size() * sizeof(Record), kBudget);
  EXPECT_GT(trace.records.size() * sizeof(Record), kBudget / 2);
  for (const auto& record : trace.records)
    EXPECT_EQ(record.sequence % record.stride, 0U) << "what is kept must be the same on all ranks";
  EXPECT_LT(std::filesystem::file_size(path()), kBudget + 4 * kBlockBytes);
}

TEST_F(TraceFile, with_too_many_keys_sums_stay_exact) {
  constexpr std::uint64_t kCalls = 50'000;
  std::uint64_t sent = 0;
  {
    Recorder recorder({.path = path()});
    for (std::uint32_t i = 0; i < kCalls; ++i) {
      auto event = event_of(i * 17, i);
      event.tag = i;
      sent += event.bytes;
      recorder.on_event(event);
    }
  }
  const auto trace = read_trace_file(path());
  EXPECT_LE(trace.counters.size(), ThreadLog::kMostKeys);
  EXPECT_EQ(calls_in(trace), kCalls);
  std::uint64_t counted = 0;
  for (const auto& counter : trace.counters) counted += counter.sent;
  EXPECT_EQ(counted, sent);
}

TEST_F(TraceFile, four_threads_lose_no_call) {
  constexpr std::uint32_t kCalls = 100'000;
  {
    Recorder recorder({.path = path(), .budget_bytes = 1U << 20U});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (std::uint32_t i = 0; i < kCalls; ++i) recorder.on_event(event_of(i % 5, i));
      });
    for (auto& thread : threads) thread.join();
  }
  const auto trace = read_trace_file(path());
  EXPECT_EQ(calls_in(trace), 4U * kCalls);
  EXPECT_TRUE(trace.problems.empty());
}

TEST_F(TraceFile, is_there_after_kill) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Recorder recorder({.path = path()});
    recorder.writer().note(NoteKind::info, 0, "rank=0");
    for (std::uint32_t i = 0;; ++i) {
      recorder.on_event(event_of(i % 10, i));
      if (i == 5000 && ::write(ends[1], "x", 1) != 1) ::_exit(1);
    }
  }
  char told = 0;
  ASSERT_EQ(::read(ends[0], &told, 1), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  const auto check = [&](const Trace& trace) {
    EXPECT_FALSE(trace.closed);
    EXPECT_TRUE(trace.problems.empty());
    EXPECT_GE(trace.records.size(), 5000U);
    EXPECT_LE(calls_in(trace) - trace.records.size(), 1U);
    for (std::uint32_t i = 0; i < trace.records.size(); ++i)
      ASSERT_EQ(trace.records[i].sequence, i);
  };
  auto trace = read_trace_file(path());
  EXPECT_FALSE(trace.sealed);
  check(trace);
  EXPECT_TRUE(seal_file(path()));
  EXPECT_FALSE(seal_file(path())) << "nothing was left open";
  trace = read_trace_file(path());
  EXPECT_TRUE(trace.sealed);
  check(trace);
  ::close(ends[0]);
  ::close(ends[1]);
}

/// What is read must be part of what was written.
void expect_part_of(const Trace& part, const Trace& whole) {
  ASSERT_LE(part.records.size(), whole.records.size());
  ASSERT_LE(part.counters.size(), whole.counters.size());
  for (const auto& record : part.records) {
    ASSERT_LT(record.sequence, whole.records.size());
    const auto& original = whole.records[record.sequence];
    ASSERT_EQ(record.begin_ns, original.begin_ns);
    ASSERT_EQ(record.duration_ns, original.duration_ns);
    ASSERT_EQ(part.counters[record.counter].key, whole.counters[original.counter].key);
  }
  for (std::size_t i = 0; i < part.counters.size(); ++i) {
    ASSERT_EQ(part.counters[i].calls, whole.counters[i].calls);
    ASSERT_EQ(part.counters[i].total_ns, whole.counters[i].total_ns);
  }
  for (const auto& [id, text] : part.notes)
    ASSERT_TRUE(whole.notes.at(id).starts_with(text)) << "a note, or its first lines";
}

bool is_whole(const Trace& trace, const Trace& whole) {
  return trace.records.size() == whole.records.size() &&
         trace.counters.size() == whole.counters.size() && trace.notes == whole.notes;
}

TEST_F(TraceFile, cut_anywhere_gives_the_part_before_or_a_clear_error) {
  const auto bytes = small_file(path());
  const auto whole = read(bytes);
  const std::size_t step = std::getenv("SINEW_FULL") != nullptr ? 1 : 61;
  for (std::size_t length = 0; length < bytes.size(); length += step) {
    try {
      const auto part = read({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)});
      expect_part_of(part, whole);
      EXPECT_FALSE(is_whole(part, whole));
      EXPECT_GE(length, kBlockBytes);
      EXPECT_FALSE(part.problems.empty());
    } catch (const Error& error) {
      EXPECT_LT(length, kBlockBytes);
      EXPECT_EQ(error.code(), Errc::invalid_argument);
    }
  }
}

TEST_F(TraceFile, any_flipped_byte_is_named_or_harmless) {
  auto bytes = small_file(path());
  const auto whole = read(bytes);
  const bool full = std::getenv("SINEW_FULL") != nullptr;
  std::size_t named = 0, refused = 0;
  for (std::size_t at = 0; at < bytes.size(); at += full ? 1 : 7) {
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    try {
      const auto part = read(bytes);
      expect_part_of(part, whole);
      EXPECT_TRUE(is_whole(part, whole) || !part.problems.empty()) << at;
      named += part.problems.empty() ? 0 : 1;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      ++refused;
    }
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    if (HasFatalFailure()) FAIL() << "flipped byte " << at;
  }
  EXPECT_GT(named, 100U);
  EXPECT_GT(refused, 10U);
}

TEST_F(TraceFile, cannot_be_made_where_nothing_can_be_written) {
  try {
    Recorder recorder({.path = "/proc/no/such/folder/a.trace"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::system);
    EXPECT_TRUE(test::has(error.what(), "/proc/no/such/folder"));
  }
}

/// Runs `body` in a process whose files may have so many blocks. The limit stands for the disk:
/// both refuse to grow the file.
int with_room_for(std::size_t blocks, const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{blocks * kBlockBytes, blocks * kBlockBytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    body();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(TraceFile, a_full_disk_costs_records_not_counts) {
  constexpr std::uint32_t kCalls = 100'000, kKinds = 900;
  const int status = with_room_for(30, [&] {  // not a multiple of what the file grows by
    Recorder recorder({.path = path()});
    for (std::uint32_t i = 0; i < kCalls; ++i) recorder.on_event(event_of(i % 10, i));
    for (std::uint32_t i = 0; i < kKinds; ++i) recorder.on_event(event_of(1000 + i, i));
  });
  ASSERT_EQ(status, 0);
  const auto trace = read_trace_file(path());
  EXPECT_TRUE(trace.lost_records);
  EXPECT_EQ(calls_in(trace), kCalls + kKinds);
  EXPECT_EQ(trace.counters.size(), 1 + 10 + kKinds) << "those that are new then have their own";
  EXPECT_TRUE(trace.closed);
  const auto profile = summarize({trace});
  EXPECT_EQ(profile.ranks[0].info.at("no_room"), "File too large");
  ASSERT_EQ(profile.warnings.size(), 1U);
  EXPECT_TRUE(test::has(profile.warnings[0], "(File too large)")) << profile.warnings[0];
  EXPECT_TRUE(test::has(profile.warnings[0],
                        std::to_string(trace.records.size()) + " of 100900 calls have one"))
      << profile.warnings[0];
}

TEST_F(TraceFile, kinds_of_calls_without_room_are_other_calls) {
  constexpr std::uint32_t kKinds = 3000;
  ASSERT_EQ(with_room_for(12,
                          [&] {
                            Recorder recorder({.path = path()});
                            for (std::uint32_t i = 0; i < kKinds; ++i)
                              recorder.on_event(event_of(i, i));
                          }),
            0);
  const auto trace = read_trace_file(path());
  EXPECT_EQ(calls_in(trace), kKinds);
  const auto profile = summarize({trace});
  const auto& routines = profile.routines;
  ASSERT_EQ(routines.count("other calls"), 1U);
  EXPECT_EQ(routines.at("other calls").calls + routines.at("send").calls, kKinds);
  EXPECT_EQ(profile.ranks[0].all.sent, std::uint64_t{kKinds} * (kKinds - 1) / 2);
  ASSERT_EQ(profile.warnings.size(), 2U);
  EXPECT_TRUE(test::has(profile.warnings[1], "'other calls'")) << profile.warnings[1];
}

TEST_F(TraceFile, threads_without_room_are_counted_once) {
  constexpr std::size_t kThreads = 30;
  ASSERT_EQ(with_room_for(12,
                          [&] {
                            Recorder recorder({.path = path()});
                            std::vector<std::thread> threads;
                            for (std::size_t i = 0; i < kThreads; ++i)
                              threads.emplace_back([&] {
                                for (std::uint32_t k = 0; k < 100; ++k)
                                  recorder.on_event(event_of(k % 3, k));
                              });
                            for (auto& thread : threads) thread.join();
                          }),
            0);
  const auto trace = read_trace_file(path());
  EXPECT_GT(trace.lost_threads, 0U);
  EXPECT_LT(trace.lost_threads, kThreads);
  EXPECT_EQ(calls_in(trace), 100 * (kThreads - trace.lost_threads));
}

TEST_F(TraceFile, needs_room_for_three_blocks) {
  ASSERT_EQ(with_room_for(3, [&] { Recorder recorder({.path = path()}); }), 0);
  EXPECT_EQ(read_trace_file(path()).closed, true);
  EXPECT_EQ(why_no_room(folder_), "");
  ASSERT_EQ(with_room_for(2,
                          [&] {
                            if (why_no_room(folder_) != "File too large") ::_exit(1);
                            try {
                              Recorder recorder({.path = path("b.trace")});
                              ::_exit(2);
                            } catch (const Error& error) {
                              if (!test::has(error.what(), "b.trace: File too large")) ::_exit(3);
                            }
                          }),
            0);
  EXPECT_FALSE(std::filesystem::exists(path("b.trace")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(TraceFile, is_read_alike_by_a_reader_written_from_its_description) {
  small_file(path());
  const auto ran = test::run({"python3", SINEW_SOURCE_DIR "/tests/trace/read_trace.py", path()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(test::has(ran.out, "closed: yes"));
  EXPECT_TRUE(test::has(ran.out, "note 1 0: rank=3"));
  EXPECT_TRUE(test::has(ran.out, "note 2 12: MPI_Send"));
  EXPECT_TRUE(test::has(ran.out, "counters: 11, calls: 300, sent: 1350"));
  EXPECT_TRUE(test::has(ran.out, "records: 300, first begins at 1000, last at 30900"));
  auto bytes = bytes_of(path());
  bytes[kBlockBytes + 80] = static_cast<char>(bytes[kBlockBytes + 80] ^ 1);
  std::ofstream(path("bad.trace"), std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const auto refused =
      test::run({"python3", SINEW_SOURCE_DIR "/tests/trace/read_trace.py", path("bad.trace")});
  EXPECT_TRUE(test::has(refused.out, "checksum"));
}

TEST(TraceSizes, classes_hold_every_size_within_a_quarter) {
  for (std::uint64_t bytes = 0; bytes < 5000; ++bytes) {
    EXPECT_GE(size_class(bytes), bytes);
    EXPECT_LE(size_class(bytes), bytes + bytes / 4 + 1);
  }
  EXPECT_EQ(size_class(1U << 20U), 1U << 20U);
}

TEST(TraceBudget, never_runs_out_before_its_last_block) {
  EXPECT_EQ(stride_of(0, 64), 1U);
  EXPECT_EQ(stride_of(31, 64), 1U);
  EXPECT_EQ(stride_of(32, 64), 16U);
  EXPECT_EQ(stride_of(48, 64), 256U);
  EXPECT_GT(stride_of(63, 64), 0U);
  EXPECT_EQ(stride_of(64, 64), 0U);
}

}  // namespace
}  // namespace sinew::trace
