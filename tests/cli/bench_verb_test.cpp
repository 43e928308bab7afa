// `sinew bench` from outside: what it prints in each style, and what it refuses. Nothing is timed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sinew/algorithms.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "support/program.hpp"

namespace sinew::test {
namespace {

using Json = nlohmann::json;

// As short as a run can be.
Ran bench(std::vector<std::string> words) {
  words.insert(words.begin(), "bench");
  words.insert(words.end(), {"--rounds", "1", "--budget", "0.001", "-n", "2", "-w", "1"});
  return sinew(words);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::vector<std::string> rows_of(const std::string& text) {
  auto lines = lines_of(text);
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("#"); });
  return lines;
}

TEST(Bench, has_the_columns_of_nccl_tests) {
  const auto ran = bench({"allreduce", "-p", "2", "--sizes", "8,4K"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_TRUE(has(ran.out, "# 2 ranks over shm, private buffers")) << ran.out;
  EXPECT_TRUE(
      has(ran.out, "#       size      count  type redop root      time  algbw  busbw #wrong\n"));
  const auto rows = rows_of(ran.out);
  ASSERT_EQ(rows.size(), 2U);
  const auto cells = words_of(rows[1]);
  ASSERT_EQ(cells.size(), 9U) << rows[1];
  EXPECT_EQ((std::vector(cells.begin(), cells.begin() + 5)),
            (std::vector<std::string>{"4096", "1024", "f32", "sum", "0"}));
  EXPECT_GT(std::stod(cells[5]), 0);
  EXPECT_EQ(cells[8], "0") << "#wrong";
}

TEST(Bench, runs_over_sockets_with_every_option_of_theirs) {
  const auto ran =
      bench({"allreduce", "--transport", "tcp", "-p", "3", "--sizes", "8,100K", "--tls", "--frame",
             "16K", "--slice", "32K", "--streams", "2", "--sockbuf", "64K", "--no-checksum"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(rows_of(ran.out).size(), 2U) << ran.out;
}

TEST(Bench, sweeps_one_knob_and_compares_with_its_first_value) {
  const auto ran =
      bench({"allreduce", "--transport", "tcp", "-p", "2", "--sizes", "8,64K", "--sweep",
             "sockbuf=64K,1M", "--sweep", "tls=off,on", "--sweep", "slice=64K,1M", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto results = Json::parse(ran.out)["results"];
  std::vector<std::string> seen;
  for (const auto& row : results) {
    const auto& sweep = row["sweep"];
    seen.push_back(fmt::format("{} {}={}", row["bytes"].get<int>(),
                               sweep["knob"].get<std::string>(),
                               sweep["value"].get<std::string>()));
    const bool first = sweep["value"] == "64K" || sweep["value"] == "off";
    EXPECT_GT(sweep["speed"], 0);
    if (first) {
      EXPECT_EQ(sweep["speed"], 1);
    }
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"8 sockbuf=64K", "8 sockbuf=1M", "65536 sockbuf=64K",
                                            "65536 sockbuf=1M", "8 tls=off", "8 tls=on",
                                            "65536 tls=off", "65536 tls=on", "8 slice=64K",
                                            "8 slice=1M", "65536 slice=64K", "65536 slice=1M"}));
}

TEST(Bench, leaves_out_what_does_not_fit_also_in_shared_buffers) {
  const auto ran = bench({"allreduce", "broadcast", "-p", "2", "--sizes", "4K", "--algo", "all",
                          "--buffers", "shared", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  std::set<std::string> shown;
  const auto results = Json::parse(ran.out)["results"];
  for (const auto& row : results)
    shown.insert(row["collective"].get<std::string>() + " " + row["algorithm"].get<std::string>());
  EXPECT_TRUE(shown.contains("allreduce shared"));
  EXPECT_TRUE(shown.contains("allreduce ring"));
  EXPECT_TRUE(shown.contains("broadcast binomial"));
  EXPECT_FALSE(shown.contains("allreduce grid")) << "one node only";
  EXPECT_FALSE(shown.contains("broadcast shared")) << "there is none";
}

TEST(Bench, shows_a_sweep_as_a_table) {
  const auto ran = bench({"allreduce", "-p", "2", "--sizes", "8,64K", "--sweep", "slot=64K,128K"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "slot   speed")) << ran.out;
  EXPECT_LE(widest_line(ran.out), 80U) << ran.out;
  EXPECT_EQ(rows_of(ran.out).size(), 4U) << ran.out;
}

TEST(Bench, refuses_a_sweep_that_means_nothing) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--sweep", "sockbuf=1M,2M"}, "shm has no sockbuf; it belongs to --transport tcp"},
      {{"--transport", "tcp", "--sweep", "sockbuf=1M"}, "several values"},
      {{"--transport", "tcp", "--sweep", "tls=on,maybe"}, "maybe"},
      {{"--transport", "tcp", "--sweep", "streams=1,x"}, "'x' is not a number"},
      {{"--transport", "tcp", "--sweep", "sockbuff=1,2"}, "did you mean 'sockbuf'?"},
      {{"--algo", "ring,flat", "--sweep", "chunk=1K,2K"}, "one algorithm"}};
  for (const auto& [words, why] : cases) {
    auto all = words;
    all.insert(all.begin(), "allreduce");
    const auto ran = bench(all);
    EXPECT_EQ(ran.status, 2);
    EXPECT_TRUE(has(ran.err, why)) << ran.err;
  }
}

TEST(Bench, stays_within_80_columns_whatever_is_shown) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{},
        {"--against", "hand"},
        {"--percentiles"},
        {"--explain"},
        {"--algo", "ring,flat,recursive_doubling"},
        {"--against", "hand", "--percentiles", "--algo", "ring,recursive_doubling", "--explain"}}) {
    std::vector<std::string> words{"allreduce", "-p", "2", "--sizes", "8,1K"};
    words.insert(words.end(), more.begin(), more.end());
    const auto ran = bench(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_LE(widest_line(ran.out), 80U) << ran.out;
  }
}

TEST(Bench, explains_what_a_trial_measured_and_which_won) {
  for (const auto* transport : {"shm", "local", "tcp"}) {
    const auto ran = bench({"allreduce", "-p", "2", "--sizes", "4K", "--transport", transport,
                            "--trial", "6", "--algo", "auto,all", "--explain"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    EXPECT_LE(widest_line(ran.out), 80U) << ran.out;
    std::vector<std::string> tried;
    std::string winner;
    for (const auto& line : lines_of(ran.out)) {
      if (!has(line, " tried ")) continue;
      tried.push_back(line);
      if (line.ends_with(" us won")) winner = words_of(line).at(1);
    }
    ASSERT_EQ(tried.size(), 2U) << ran.out;
    ASSERT_NE(winner, "") << ran.out;
    EXPECT_TRUE(rows_of(ran.out).at(0).ends_with(" " + winner)) << ran.out;  // what auto ran by
  }
  const auto off = bench({"allreduce", "-p", "2", "--sizes", "4K", "--explain", "--trial", "0"});
  EXPECT_FALSE(has(off.out, "tried")) << off.out;
  const auto unasked = bench({"allgather", "-p", "2", "--sizes", "64K", "--explain"});
  EXPECT_TRUE(has(unasked.out, " us won\n")) << unasked.out;
  expect_error({"bench", "allreduce", "--trial", "1"}, 2, "--trial=1: two algorithms take turns");
}

TEST(Bench, peers_stand_in_the_row_with_the_ratio) {
  const auto ran = bench({"allreduce", "-p", "2", "--sizes", "64K", "--against", "hand"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, " #wrong      hand  ratio\n")) << ran.out;
  const auto cells = words_of(rows_of(ran.out).at(0));
  ASSERT_EQ(cells.size(), 7U) << ran.out;  // size time algbw busbw #wrong hand ratio
  EXPECT_NEAR(std::stod(cells[6]), std::stod(cells[5]) / std::stod(cells[1]),
              0.05 * std::stod(cells[6]) + 0.02);
}

TEST(Bench, several_algorithms_stand_side_by_side) {
  const auto ran = bench({"allreduce", "-p", "3", "--sizes", "64", "--algo", "flat,ring"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto rows = rows_of(ran.out);
  ASSERT_EQ(rows.size(), 2U) << ran.out;
  EXPECT_TRUE(rows[0].ends_with(" flat"));
  EXPECT_TRUE(rows[1].ends_with(" ring"));
}

TEST(Bench, json_has_every_field_of_its_schema_and_no_other) {
  const auto ran =
      bench({"allreduce", "-p", "2", "--sizes", "8,64K", "--against", "hand", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto document = Json::parse(ran.out);
  const auto keys = [](const Json& object) {
    std::set<std::string> names;
    for (const auto& [key, value] : object.items()) names.insert(key);
    return names;
  };
  EXPECT_EQ(keys(document),
            (std::set<std::string>{"schema", "sinew", "command", "machine", "results"}));
  EXPECT_EQ(document["schema"], "sinew-bench/1");
  EXPECT_TRUE(has(document["command"], "sinew bench allreduce -p 2"));
  for (const auto key : {"cpu", "cores", "l3_bytes", "memory_gib", "kernel", "time"})
    EXPECT_TRUE(document["machine"].contains(key)) << key;
  ASSERT_EQ(document["results"].size(), 2U);
  const std::set<std::string> required{
      "collective", "algorithm", "auto",     "transport", "ranks",     "bytes",  "dtype",
      "op",         "buffers",   "in_place", "root",      "min_us",    "p50_us", "p99_us",
      "algbw_gbs",  "busbw_gbs", "wrong",    "peers",     "best_peer", "ratio",  "probe_us"};
  for (const auto& row : document["results"]) {
    auto found = keys(row);
    found.erase("ratio_fast_mode");  // which of the two are there is the machine's mood
    found.erase("ratio_slow_mode");
    EXPECT_EQ(found, required);
    EXPECT_EQ(row["collective"], "allreduce");
    EXPECT_EQ(row["transport"], "shm");
    EXPECT_EQ(row["ranks"], 2);
    EXPECT_EQ(row["dtype"], "f32");
    EXPECT_EQ(row["op"], "sum");
    EXPECT_EQ(row["buffers"], "private");
    EXPECT_EQ(row["wrong"], 0);
    EXPECT_NO_THROW(find_algorithm(Collective::allreduce, row["algorithm"].get<std::string>()));
    EXPECT_LE(row["min_us"], row["p50_us"]);
    EXPECT_LE(row["p50_us"], row["p99_us"]);
    EXPECT_GT(row["peers"]["hand"]["p50_us"], 0);
    EXPECT_EQ(row["best_peer"], "hand");
    EXPECT_GT(row["ratio"], 0);
  }
  EXPECT_EQ(document["results"][0]["bytes"], 8);
  EXPECT_EQ(document["results"][1]["bytes"], 65536);
}

TEST(Bench, json_without_peers_has_null_for_their_best) {
  const auto document = Json::parse(bench({"barrier", "-p", "2", "--style", "json"}).out);
  const auto& row = document["results"].at(0);
  EXPECT_TRUE(row["best_peer"].is_null());
  EXPECT_TRUE(row["ratio"].is_null());
  EXPECT_EQ(row["peers"], Json::object());
  EXPECT_EQ(row["bytes"], 0);
}

TEST(Bench, csv_has_a_row_for_every_collective_and_size) {
  const auto ran = bench({"all", "-p", "3", "--sizes", "12,3000", "--style", "csv"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const auto lines = lines_of(ran.out);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0],
            "collective,algorithm,transport,ranks,bytes,dtype,op,buffers,min_us,p50_us,p99_us,"
            "algbw_gbs,busbw_gbs,wrong");
  std::map<std::string, int> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto cells = split(lines[i], ',');
    ASSERT_EQ(cells.size(), 14U) << lines[i];
    ++rows[std::string(cells[0])];
    EXPECT_EQ(cells[3], "3");
    EXPECT_EQ(cells[13], "0") << lines[i];
  }
  EXPECT_EQ(rows, (std::map<std::string, int>{{"allreduce", 2},
                                              {"reduce", 2},
                                              {"broadcast", 2},
                                              {"allgather", 2},
                                              {"allgatherv", 2},
                                              {"reduce_scatter", 2},
                                              {"alltoall", 2},
                                              {"alltoallv", 2},
                                              {"scatter", 2},
                                              {"gather", 2},
                                              {"barrier", 1}}));
}

TEST(Bench, uneven_alltoallv_stands_beside_the_padded_one) {
  const auto ran = bench({"alltoallv", "-p", "3", "--sizes", "48K", "--imbalance", "zipf:1.2",
                          "--transport", "local", "--style", "csv"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const auto lines = lines_of(ran.out);
  ASSERT_EQ(lines.size(), 3U) << ran.out;
  EXPECT_TRUE(lines[1].starts_with("alltoallv,"));
  EXPECT_TRUE(lines[2].starts_with("alltoall,"));
  for (const auto i : {1U, 2U}) EXPECT_TRUE(has(lines[i], ",local,3,49152,f32,")) << lines[i];
}

TEST(Bench, all_algorithms_are_those_that_take_parts_of_different_sizes) {
  const auto ran =
      bench({"alltoallv", "-p", "3", "--sizes", "48K", "--algo", "all", "--style", "csv"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "alltoallv,linear,"));
  EXPECT_FALSE(has(ran.out, "alltoallv,bruck,"));
  EXPECT_TRUE(has(ran.out, "alltoall,bruck,"));
}

TEST(Bench, a_named_algorithm_that_cannot_is_left_out_and_said) {
  const auto ran = bench({"allgather", "alltoallv", "-p", "3", "--sizes", "48K", "--algo",
                          "recursive_doubling,bruck,linear", "--style", "csv"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.err,
                  "allgather recursive_doubling is left out: it does not fit these ranks (3 ranks"))
      << ran.err;
  EXPECT_TRUE(has(ran.err, "alltoallv bruck is left out: it needs parts of equal size")) << ran.err;
  EXPECT_FALSE(has(ran.err, "linear"));
  EXPECT_TRUE(has(ran.out, "alltoallv,linear,"));
}

TEST(Bench, without_anything_to_measure_fails) {
  const auto ran =
      bench({"allgather", "-p", "3", "--sizes", "48K", "--algo", "recursive_doubling"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(has(ran.err, "nothing was measured")) << ran.err;
}

TEST(Bench, rank_counts_are_lists_and_ranges) {
  const auto ranks = [](const std::string& text) {
    std::vector<std::string> seen;
    for (const auto& line : lines_of(bench({"barrier", "-p", text, "--style", "csv"}).out))
      if (line.starts_with("barrier,")) seen.emplace_back(split(line, ',')[3]);
    return seen;
  };
  EXPECT_EQ(ranks("2,4"), (std::vector<std::string>{"2", "4"}));
  EXPECT_EQ(ranks("2..4"), (std::vector<std::string>{"2", "3", "4"}));
}

TEST(Bench, sizes_grow_by_the_factor_from_first_to_last) {
  std::vector<std::string> sizes;
  for (const auto& row : rows_of(
           bench({"broadcast", "-p", "2", "-b", "1K", "-e", "16K", "-f", "4", "-r", "1"}).out)) {
    sizes.push_back(words_of(row).at(0));
    EXPECT_EQ(words_of(row).at(4), "1") << "root";
  }
  EXPECT_EQ(sizes, (std::vector<std::string>{"1024", "4096", "16384"}));
}

TEST(Bench, other_types_and_operations_are_checked_too) {
  for (const auto& [type, op] : {std::pair{"bf16", "avg"}, {"i8", "bxor"}, {"u64", "prod"}}) {
    const auto document = Json::parse(bench({"allreduce", "reduce_scatter", "-p", "3", "--sizes",
                                             "999", "-d", type, "--op", op, "--json"})
                                          .out);
    for (const auto& row : document["results"]) {
      EXPECT_EQ(row["dtype"], type);
      EXPECT_EQ(row["op"], op);
      EXPECT_EQ(row["wrong"], 0) << type << " " << op;
    }
  }
}

TEST(Bench, emulates_nodes_and_chooses_by_their_links) {
  const auto ran =
      bench({"allreduce", "--emulate", "2x4,1Gbit,1ms", "--sizes", "64K", "--explain", "--json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto document = Json::parse(ran.out);
  const auto& row = document["results"].at(0);
  EXPECT_EQ(row["ranks"], 8);
  EXPECT_EQ(row["transport"], "emulated");
  EXPECT_EQ(row["emulate"], "2x4,1Gbit,1ms");
  EXPECT_EQ(row["algorithm"], "two_level");
  EXPECT_EQ(row["wrong"], 0);
  EXPECT_GE(row["min_us"], 1000 + 65536 * 8 / 1000);  // no message is earlier than its link allows
  const auto explained = lines_of(ran.err);
  ASSERT_GT(explained.size(), 2U);
  EXPECT_TRUE(explained[1].starts_with("#   two_level ")) << ran.err;  // the cheapest comes first
  EXPECT_TRUE(has(ran.err, "direct                          -    does not fit these ranks"));
}

TEST(Bench, emulation_is_told_in_the_heading_and_works_with_threads) {
  const auto ran = bench({"broadcast", "--emulate", "2x1,100Mbit,0us", "--sizes", "8", "-p", "2",
                          "--transport", "local"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "# emulated: 2x1,100Mbit,0us")) << ran.out;
  EXPECT_LE(widest_line(ran.out), 80U);
}

TEST(Bench, refuses_networks_that_make_no_sense) {
  const auto refuse = [](const std::string& network, const std::string& why) {
    expect_error({"bench", "allreduce", "--emulate", network}, 2, why);
  };
  refuse("2x4", "1 words instead of 3");
  refuse("2y4,1Gbit,1ms", "'2y4' is not nodes x ranks");
  refuse("0x4,1Gbit,1ms", "'0x4' is not a node map");
  refuse("2x4,1Gb,1ms", "'1Gb' is not a rate in Kbit, Mbit or Gbit");
  refuse("2x4,0Gbit,1ms", "'0Gbit' is not a rate");
  refuse("2x4,1Gbit,1s", "'1s' is not a time in us or ms");
  refuse("2x4,1Gbit,-1ms", "'-1ms' is not a time");
  expect_error({"bench", "allreduce", "--emulate", "2x4,1Gbit,1ms", "-p", "4"}, 2,
               "holds 8 ranks, but -p says 4");
  expect_error({"bench", "allreduce", "--emulate", "2x4,1Gbit,1ms", "--against", "hand"}, 2,
               "--against");
  expect_error({"bench", "allreduce", "--emulate", "2x4,1Gbit,1ms", "--buffers", "shared"}, 2,
               "--buffers shared");
}

TEST(Bench, refuses_what_it_does_not_know_and_suggests_the_nearest) {
  expect_error({"bench"}, 2, "collective is required");
  expect_error({"bench", "alreduce"}, 2, "did you mean 'allreduce'?");
  expect_error({"bench", "allreduce", "--stile", "csv"}, 2, "did you mean '--style'?");
  expect_error({"bench", "allreduce", "--style", "cvs"}, 2, "did you mean 'csv'?");
  expect_error({"bench", "allreduce", "--transport", "sm"}, 2, "did you mean 'shm'?");
  expect_error({"bench", "allreduce", "--buffers", "shred"}, 2, "did you mean 'shared'?");
  expect_error({"bench", "allreduce", "--against", "opnmpi"}, 2, "did you mean 'openmpi'?");
  expect_error({"bench", "allreduce", "--algo", "rign"}, 2, "did you mean 'ring'?");
  expect_error({"bench", "allreduce", "-d", "f23"}, 2, "did you mean 'f32'?");
  expect_error({"bench", "allreduce", "--op", "summ"}, 2, "did you mean 'sum'?");
}

TEST(Bench, refuses_numbers_that_make_no_sense) {
  expect_error({"bench", "allreduce", "-p", "0"}, 2, "rank counts");
  expect_error({"bench", "allreduce", "-p", "4..2"}, 2, "4..2");
  expect_error({"bench", "allreduce", "--sizes", "8,4X"}, 2, "'4X' is not a size");
  expect_error({"bench", "allreduce", "-f", "1"}, 2, "does not grow");
  expect_error({"bench", "allreduce", "-b", "2M", "-e", "1M"}, 2, "no size between");
  expect_error({"bench", "allreduce", "-w", "-1"}, 2, "--warmup_iters");
  expect_error({"bench", "allreduce", "-w", "few"}, 2, "--warmup_iters");
  expect_error({"bench", "allreduce", "--rounds", "0"}, 2, "--rounds");
  expect_error({"bench", "broadcast", "-p", "2,4", "-r", "3"}, 2, "no such rank among 2");
  expect_error({"bench", "alltoallv", "--imbalance", "zipf:much"}, 2, "zipf:1.2");
  expect_error({"bench", "alltoallv", "--imbalance", "1.2"}, 2, "zipf:1.2");
}

}  // namespace
}  // namespace sinew::test
