// `sinew verify` from outside: proofs, counterexamples and their statuses.
#include <gtest/gtest.h>
#include <sinew/algorithms.hpp>

#include <nlohmann/json.hpp>

#include "support/program.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::ordered_json;

std::string ring_document() {
  return to_json(make_world(find_algorithm(Collective::allreduce, "ring"), 4));
}
// Rank 2 forgets to combine once.
std::string wrong_document() {
  auto world = make_world(find_algorithm(Collective::allreduce, "ring"), 4);
  for (auto& step : world.ranks[2].steps)
    if (step.op == Op::recv_reduce) {
      step.op = Op::recv;
      break;
    }
  return to_json(world);
}

TEST(Verify, proves_the_whole_registry) {
  const auto ran = sinew({"verify", "--all", "-p", "1..9"});
  EXPECT_EQ(ran.status, 0) << ran.out;
  EXPECT_EQ(ran.err, "");  // no progress off a terminal
  EXPECT_TRUE(has(ran.out, std::to_string(algorithms().size()) + " algorithms"));
  EXPECT_TRUE(has(ran.out, "same bits, rank order"));
  EXPECT_TRUE(has(ran.out, " 0 wrong"));
  EXPECT_LE(widest_line(ran.out), 80U);
}

TEST(Verify, chooses_by_collective_and_by_name) {
  const auto json =
      Json::parse(sinew({"verify", "allreduce", "--algo", "ring", "-p", "2,4", "--json"}).out);
  ASSERT_EQ(json["results"].size(), 1U);
  EXPECT_EQ(json["results"][0]["worlds"], 8);  // two sizes under four conditions
  EXPECT_EQ(json["ok"], true);
  const auto rings = Json::parse(sinew({"verify", "--algo", "ring", "-p", "3", "--json"}).out);
  EXPECT_EQ(rings["results"].size(), 3U);
}

TEST(Verify, tries_a_death_at_any_point) {
  const auto ran = sinew({"verify", "--all", "--crash"});
  EXPECT_EQ(ran.status, 0) << ran.out;
  EXPECT_TRUE(has(ran.out, "wherever a rank dies, nobody waits for ever")) << ran.out;
  const auto json = Json::parse(
      sinew({"verify", "allreduce", "--algo", "ring", "-p", "3", "--crash", "--json"}).out);
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["worlds"], 2);  // both kinds of sends
  EXPECT_GT(json["states"], 100);
}

TEST(Verify, says_so_when_nothing_fits) {
  const auto ran = sinew({"verify", "allgather", "--algo", "recursive_doubling", "-p", "6"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(has(ran.out, "no fit"));
}

TEST(Verify, a_sound_document_passes) {
  const auto ran = sinew({"verify", "--schedule", "-"}, ring_document());
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_TRUE(has(ran.out, "allreduce ring P=4 root=0: ok, same bits\n  in place: yes"));
}

TEST(Verify, a_wrong_document_gets_a_counterexample_and_status_4) {
  const auto ran = sinew({"verify", "--schedule", "-"}, wrong_document());
  EXPECT_EQ(ran.status, 4);
  EXPECT_TRUE(has(ran.out, "counterexample")) << ran.out;
  EXPECT_TRUE(has(ran.out, "rank ")) << ran.out;
  EXPECT_TRUE(has(ran.out, "round ")) << ran.out;
  EXPECT_TRUE(has(ran.out, "is missing")) << ran.out;
  const auto json = sinew({"verify", "--schedule", "-", "--json"}, wrong_document());
  EXPECT_EQ(json.status, 4);
  EXPECT_TRUE(has(Json::parse(json.out)["counterexample"]["why"], "is missing"));
}

TEST(Verify, a_malformed_document_or_command_is_a_usage_error) {
  for (const std::string text :
       {"", "{}", "[]", "{\"schema\": \"sinew-schedule\", \"version\": 1}"}) {
    const auto ran = sinew({"verify", "--schedule", "-"}, text);
    EXPECT_EQ(ran.status, 2) << text;
    EXPECT_TRUE(ran.err.starts_with("sinew: ")) << ran.err;
  }
  EXPECT_EQ(sinew({"verify"}).status, 2);
  EXPECT_EQ(sinew({"verify", "allreduce", "--all"}).status, 2);
  EXPECT_EQ(sinew({"verify", "allreduce", "-p", "0"}).status, 2);
  EXPECT_EQ(sinew({"verify", "allreduce", "-p", "4..2"}).status, 2);
  EXPECT_EQ(sinew({"verify", "--algo", "nonsense"}).status, 2);
}

}  // namespace
}  // namespace sinew::test
