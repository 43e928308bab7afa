// Chakra traces: both spellings, dependences, and two streams that overlap.
#include "model/chakra.hpp"

#include <gtest/gtest.h>

#include <sinew/error.hpp>
#include "model/network_file.hpp"

namespace sinew {
namespace {

// Two layers backward, an allreduce after each; the update waits for both.
const std::string kTrace = R"({"version": "0.0.4"}
{"id": "1", "name": "layer2", "type": "COMP_NODE", "durationMicros": "2000"}
{"id": "2", "name": "sum2", "type": "COMM_COLL_NODE", "dataDeps": ["1"],
 "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "1000000"}]}
{"id": "3", "name": "layer1 {", "type": "COMP_NODE", "ctrlDeps": ["1"], "durationMicros": "1000"}
{"id": "4", "name": "sum1", "type": "COMM_COLL_NODE", "dataDeps": ["3"],
 "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "1000000"}]}
{"id": "5", "name": "load", "type": "MEM_LOAD_NODE", "dataDeps": ["4"]}
{"id": "6", "name": "update", "type": "COMP_NODE", "dataDeps": ["2", "4", "5"],
 "durationMicros": "500"}
)";

std::string refusal(const std::string& text) {
  try {
    parse_chakra(text, "et.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Chakra, collectives_travel_while_layers_compute) {
  const auto trace = parse_chakra(kTrace, "et.json");
  EXPECT_EQ(trace.nodes.size(), 6U);
  EXPECT_EQ(trace.notes.size(), 1U);
  CostBook costs(parse_network_line("alpha=0us,bw=1GB/s"));
  const auto times = replay_chakra(trace, costs, 2);
  // Each sum takes 1 ms on two workers: 2..3 beside layer 1, then 3..4, then the update.
  EXPECT_NEAR(times.communication_ms, 2, 1e-6);
  EXPECT_NEAR(times.step_ms, 4.5, 1e-6);
  EXPECT_NEAR(times.exposed_ms, 1, 1e-6);
  EXPECT_NEAR(replay_chakra(trace, costs, 1).step_ms, 3.5, 1e-6);
}

TEST(Chakra, lists_and_underscores_are_read_too) {
  const auto trace = parse_chakra(
      R"({"nodes": [{"id": 1, "type": 4, "duration_micros": 10},
                   {"id": 2, "type": 7, "data_deps": [1],
                    "attr": [{"name": "comm_type", "string_val": "ALL_GATHER"},
                             {"name": "comm_size", "uint64_val": 64}]}]})",
      "et.json");
  ASSERT_EQ(trace.nodes.size(), 2U);
  EXPECT_EQ(trace.nodes[1].collective, Collective::allgather);
  EXPECT_EQ(trace.nodes[1].bytes, 64);
  EXPECT_EQ(trace.nodes[1].after, std::vector<std::size_t>{0});
}

TEST(Chakra, mistakes_name_the_node) {
  EXPECT_EQ(refusal("{}"), "et.json: not a Chakra trace: there is no node with a type");
  EXPECT_EQ(refusal("[1, 2"), "et.json: not JSON at byte 0");
  EXPECT_EQ(refusal(R"({"id": 7, "type": "COMM_COLL_NODE"})"),
            "et.json: node 7 is a collective without comm_type or comm_size");
  EXPECT_EQ(refusal(R"([{"id": 1, "type": "COMP_NODE", "dataDeps": ["9"]}])"),
            "et.json: node 1 waits for node \"9\", which is not there");
  EXPECT_EQ(refusal(R"([{"id": 1, "type": "COMP_NODE"}, {"id": 1, "type": "COMP_NODE"}])"),
            "et.json: node 1 is there twice");
}

TEST(Chakra, circles_are_refused) {
  const auto trace = parse_chakra(R"([{"id": 1, "type": "COMP_NODE", "dataDeps": [2]},
                                      {"id": 2, "type": "COMP_NODE", "dataDeps": [1]}])",
                                  "et.json");
  CostBook costs(parse_network_line("alpha=0us,bw=1GB/s"));
  EXPECT_THROW(replay_chakra(trace, costs, 2), Error);
}

}  // namespace
}  // namespace sinew
