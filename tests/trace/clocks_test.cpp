// Traces of two hosts whose clocks differ and drift.
#include "trace/clocks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <sinew/trace.hpp>
#include "trace/profile.hpp"

namespace sinew::trace {
namespace {

constexpr double kOffset = 5e9, kDrift = 20e-6;

/// What the clock of the second host shows at a moment of the first.
double second_clock(double ns) { return kOffset + ns * (1 + kDrift); }

Trace trace_of(int rank, const std::string& boot) {
  Trace trace;
  trace.boot = boot;
  trace.closed = true;
  trace.notes[{NoteKind::info, 0}] = "rank=" + std::to_string(rank) + "\nsize=2";
  trace.notes[{NoteKind::routine, 1}] = "MPI_Barrier";
  trace.notes[{NoteKind::routine, 2}] = "MPI_Allreduce";
  trace.notes[{NoteKind::communicator, 7}] = "world\nsize=2\nmembers=0-1";
  for (std::uint16_t routine = 1; routine <= 2; ++routine) {
    Counter counter;
    counter.key.kind = static_cast<std::uint8_t>(EventKind::call);
    counter.key.operation = routine;
    counter.key.communicator = 7;
    counter.key.sent = counter.key.received = routine == 2 ? 8 : 0;
    counter.calls = 1;
    trace.counters.push_back(counter);
  }
  return trace;
}

struct Job {
  std::vector<Trace> traces{trace_of(0, "a"), trace_of(1, "b")};
  std::vector<double> begins;  // of the second rank's records, on the first clock
};

/// `rounds` of a barrier and an allreduce to which the second rank comes 20 ms late.
Job job_of(int rounds) {
  Job job;
  std::mt19937 random(3);
  const auto jitter = [&] { return 1000.0 + random() % 40'000; };
  double now = 1e9;
  std::uint32_t sequence = 0;
  const auto meet = [&](std::size_t counter, double first, double second) {
    const double end = std::max(first, second) + jitter();
    const double ends[2] = {end + jitter(), end + jitter()};
    job.traces[0].records.push_back({counter, static_cast<std::uint64_t>(first),
                                     static_cast<std::uint64_t>(ends[0] - first), 0, ++sequence,
                                     1});
    job.traces[1].records.push_back(
        {counter, static_cast<std::uint64_t>(second_clock(second)),
         static_cast<std::uint64_t>(second_clock(ends[1]) - second_clock(second)), 0, sequence, 1});
    job.begins.push_back(second);
    now = std::max(ends[0], ends[1]);
  };
  for (int i = 0; i < rounds; ++i) {
    meet(0, now + jitter(), now + jitter());
    meet(1, now + jitter(), now + 20e6);
  }
  return job;
}

TEST(Clocks, of_two_hosts_agree_within_the_error_that_is_told) {
  auto job = job_of(500);
  const auto alignment = align_clocks(job.traces, find_meetings(job.traces));
  EXPECT_TRUE(alignment.comparable);
  EXPECT_LT(alignment.error_ns, 100'000);
  EXPECT_NEAR(alignment.offset_ns, kOffset, 0.01 * kOffset);
  for (std::size_t i = 0; i < job.begins.size(); ++i)
    ASSERT_NEAR(static_cast<double>(job.traces[1].records[i].begin_ns), job.begins[i],
                alignment.error_ns);
}

TEST(Clocks, waiting_is_told_across_hosts) {
  const auto profile = summarize(job_of(500).traces);
  const auto& waited = profile.waited_by_rank.at("MPI_Allreduce");
  EXPECT_NEAR(waited[0], 500 * 20e6, 0.01 * 500 * 20e6);
  EXPECT_LT(waited[1], 500 * 0.1e6);
  EXPECT_GT(profile.clock_error_ns, 0);
  EXPECT_GT(profile.clock_offset_ns, 1e9);
  EXPECT_TRUE(profile.warnings.empty());
}

TEST(Clocks, hosts_that_never_met_are_not_compared) {
  Job job;
  const auto profile = summarize(job.traces);
  EXPECT_TRUE(profile.waited_by_rank.empty());
  ASSERT_EQ(profile.warnings.size(), 1U);
  EXPECT_NE(profile.warnings[0].find("cannot be compared"), std::string::npos);
}

TEST(Clocks, of_one_host_stay_as_they_are) {
  auto job = job_of(10);
  job.traces[1].boot = "a";
  const auto before = job.traces[1].records[3].begin_ns;
  const auto alignment = align_clocks(job.traces, find_meetings(job.traces));
  EXPECT_EQ(alignment.error_ns, kSameHostErrorNs);
  EXPECT_EQ(job.traces[1].records[3].begin_ns, before);
}

}  // namespace
}  // namespace sinew::trace
