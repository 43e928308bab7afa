// The timeline is what Perfetto reads: trace-event JSON with every call in its place.
#include "report/timeline.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sinew::report {
namespace {

using trace::NoteKind;
using trace::Trace;

Trace trace_of(int rank) {
  Trace trace;
  trace.notes[{NoteKind::info, 0}] = "host=a\nrank=" + std::to_string(rank) + "\n";
  trace.notes[{NoteKind::routine, 7}] = "MPI_Bcast";
  trace::Counter counter;
  counter.key.kind = 0;
  counter.key.bytes = 64;
  counter.key.peer = 1 - rank;
  counter.thread = 2;
  trace.counters.push_back(counter);
  trace.records.push_back(
      {.counter = 0, .begin_ns = 5'000 + 10U * static_cast<unsigned>(rank), .duration_ns = 1'500});
  trace.records.push_back({.counter = 0, .begin_ns = 9'000, .duration_ns = 250});
  return trace;
}

TEST(Timeline, has_a_process_for_each_rank_and_a_slice_for_each_call) {
  const Trace traces[] = {trace_of(0), trace_of(1)};
  const auto json = nlohmann::json::parse(to_perfetto(traces));
  const auto& events = json.at("traceEvents");
  ASSERT_EQ(events.size(), 6U);
  int slices = 0, names = 0;
  for (const auto& event : events) {
    const auto phase = event.at("ph").get<std::string>();
    ASSERT_TRUE(phase == "X" || phase == "M");
    if (phase == "M") {
      ++names;
      EXPECT_EQ(event.at("args").at("name"), "rank " + std::to_string(event.at("pid").get<int>()));
      continue;
    }
    ++slices;
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_GT(event.at("dur").get<double>(), 0);
    EXPECT_EQ(event.at("tid"), 2);
    EXPECT_TRUE(event.at("name").is_string());
    EXPECT_EQ(event.at("args").at("bytes"), 64);
  }
  EXPECT_EQ(slices, 4);
  EXPECT_EQ(names, 2);
  EXPECT_DOUBLE_EQ(events[1].at("ts").get<double>(), 0);
  EXPECT_DOUBLE_EQ(events[1].at("dur").get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(events[4].at("ts").get<double>(), 0.01);
}

TEST(Timeline, of_nothing_is_empty_and_valid) {
  EXPECT_TRUE(nlohmann::json::parse(to_perfetto({})).at("traceEvents").empty());
}

}  // namespace
}  // namespace sinew::report
