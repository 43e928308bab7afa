// What nccl-tests printed, and the network that explains it.
#include "imports/nccl_tests.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <sinew/error.hpp>
#include "model/predict.hpp"
#include "model/ring_fit.hpp"

namespace sinew::imports {
namespace {

const std::string kTable =
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor)\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid   6899 on host device  0 [0000:04:00] NVIDIA H100\n"
    "#  Rank  1 Group  0 Pid   6900 on host device  1 [0000:05:00] NVIDIA H100\n"
    "#\n"
    "#                                                    out-of-place           in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us) "
    " (GB/s)  (GB/s)\n"
    "        1024           256     float     sum      -1    12.00    0.09    0.09      0    11.50 "
    "   0.09    0.09      0\n"
    "     1048576        262144     float     sum      -1   115.00    9.12    9.12      0   115.50 "
    "   9.08    9.08      0\n"
    "# Avg bus bandwidth    : 4.6\n";

TEST(NcclTests, the_table_is_read) {
  const auto times = read_nccl_tests({"all_reduce_perf.txt", kTable}, "");
  EXPECT_EQ(times.collective, Collective::allreduce);
  EXPECT_EQ(times.ranks, 2);
  ASSERT_EQ(times.rows.size(), 2U);
  EXPECT_EQ(times.rows[0].bytes, 1024);
  EXPECT_EQ(times.rows[0].us, 11.5);
  EXPECT_EQ(times.rows[1].us, 115);
}

TEST(NcclTests, their_json_is_read) {
  const auto times = read_nccl_tests(
      {"x.json", R"({"config": {"devices": [{"rank": 0}, {"rank": 1}, {"rank": 2}, {"rank": 3}]},
         "results": [{"size": 4096, "out_of_place": {"time": 9.5}, "in_place": {"time": 9.0}},
                     {"size": 1024, "out_of_place": null, "in_place": {"cpu_time": 8.0}}]})"},
      "allgather");
  EXPECT_EQ(times.collective, Collective::allgather);
  EXPECT_EQ(times.ranks, 4);
  ASSERT_EQ(times.rows.size(), 2U);
  EXPECT_EQ(times.rows[0].us, 8);
  EXPECT_EQ(times.rows[1].us, 9);
}

TEST(NcclTests, mistakes_are_named) {
  EXPECT_THROW(read_nccl_tests({"x.txt", kTable}, ""), Error);              // no program is named
  EXPECT_THROW(read_nccl_tests({"x.txt", "hello\n"}, "allreduce"), Error);  // no row
  EXPECT_THROW(read_nccl_tests({"x.json", "{}"}, "allreduce"), Error);
}

// Times of a ring on a known network give that network back.
TEST(RingFit, finds_the_network_that_made_the_times) {
  const auto curve = Curve({{16384, 5e6, 400}, {0, 20e6, 50}});
  for (const auto collective : {Collective::allreduce, Collective::allgather,
                                Collective::reduce_scatter, Collective::alltoall}) {
    Network truth;
    truth.one_way = curve;
    truth.eager_bytes = -1;
    const auto* algorithm = collective == Collective::alltoall ? "pairwise" : "ring";
    std::vector<Sample> samples;
    for (double bytes = 1024; bytes < 1e9; bytes *= 2)
      samples.push_back({bytes, static_cast<double>(predict(find_algorithm(collective, algorithm),
                                                            {collective, 8, bytes}, truth)
                                                        .time)});
    const auto network = fit_ring(collective, 8, samples);
    for (const double bytes : {512.0, 4096.0, 1e6, 1e8}) {
      const auto found = network.one_way.at(bytes), wanted = curve.at(bytes);
      EXPECT_NEAR(static_cast<double>(found.alpha + found.beta),
                  static_cast<double>(wanted.alpha + wanted.beta),
                  0.02 * static_cast<double>(wanted.alpha + wanted.beta))
          << name(collective) << ' ' << bytes;
    }
  }
}

TEST(RingFit, what_tells_nothing_is_refused) {
  const Sample samples[] = {{1024, 1e6}, {2048, 2e6}};
  EXPECT_THROW(fit_ring(Collective::broadcast, 8, samples), Error);
  EXPECT_THROW(fit_ring(Collective::allreduce, 1, samples), Error);
  EXPECT_THROW(fit_ring(Collective::allreduce, 8, std::span(samples).first(1)), Error);
}

}  // namespace
}  // namespace sinew::imports
