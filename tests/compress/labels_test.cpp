// The exchanges of a scheme name themselves in traces.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "runtime/tracing.hpp"
#include "support/gradients.hpp"
#include "support/scheme_run.hpp"
#include "trace/profile.hpp"

namespace sinew {
namespace {

/// Labels of all collectives that this scheme's steps leave in a trace; "" for one without.
std::set<std::string> labels_of(const std::string& scheme) {
  std::string folder = (std::filesystem::temp_directory_path() / "sinew-labels-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return {"no folder"};
  const auto complaint = test::on_ranks(2, [&](Communicator& communicator) -> std::string {
    const auto observer =
        trace_to(folder + "/" + std::to_string(communicator.rank()), communicator.rank(), 2);
    communicator.observe(observer.get());
    Compressor compressor(communicator, find_scheme(scheme), 1000, {.target_items = 20});
    for (std::uint64_t step = 0; step < 3; ++step)
      test::take_step(compressor, test::gradient(1000, communicator.rank(), step));
    communicator.observe(nullptr);
    return {};
  });
  EXPECT_EQ(complaint, "");
  std::set<std::string> labels;
  std::vector<trace::Trace> traces;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) traces.push_back(trace::read_trace_file(entry.path().string()));
  for (const auto& [key, totals] : trace::summarize(traces).rows)
    if (trace::is_communication(key.routine) && key.routine != "send" && key.routine != "recv")
      labels.insert(key.label.empty() ? "no label: " + key.routine : key.label);
  std::filesystem::remove_all(folder);
  return labels;
}

TEST(Labels, of_ok_topk_tell_what_each_exchange_is_for) {
  const auto labels = labels_of("oktopk");
  for (const char* const label : {"ALLTOALL_SPLIT", "ALLGATHER_GATHER", "ALLTOALL_COUNTS"})
    EXPECT_EQ(labels.count(label), 1U) << label;
}

TEST(Labels, are_there_for_every_collective_of_every_scheme) {
  for (const auto& scheme : schemes()) {
    const auto labels = labels_of(std::string(scheme.name));
    EXPECT_FALSE(labels.empty()) << scheme.name;
    for (const auto& label : labels)
      EXPECT_FALSE(label.starts_with("no label")) << scheme.name << ": " << label;
  }
}

}  // namespace
}  // namespace sinew
