// Rows of a benchmark and the ways to print them.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include <sinew/types.hpp>
#include "measure/result.hpp"

namespace sinew {

/// One measured cell: ours, and the peers that ran beside it.
struct BenchRow {
  std::string collective, algorithm, transport, buffers;
  int ranks = 0, root = 0;
  std::uint64_t bytes = 0, count = 0;
  DType dtype{};
  ReduceOp op{};
  bool in_place = false;
  bench::Summary ours;
  std::uint64_t wrong = 0;
  std::map<std::string, bench::Summary> peers;
  std::vector<double> probes_us;                 // before and after each round
  std::optional<double> ratio_fast, ratio_slow;  // best peer / ours, by the machine's mode

  [[nodiscard]] double algbw_gbs() const;
  [[nodiscard]] double busbw_gbs() const;
  /// The fastest peer by median, "" without peers.
  [[nodiscard]] std::string best_peer() const;
  [[nodiscard]] std::optional<double> ratio() const;
};

enum class BenchStyle : std::uint8_t { nccl, csv, json };
BenchStyle parse_bench_style(std::string_view text);

/// Printed as rows come; JSON waits for the end.
std::string bench_head(BenchStyle style, const std::vector<std::string>& peers, bool percentiles);
std::string bench_line(BenchStyle style, const BenchRow& row, const std::vector<std::string>& peers,
                       bool percentiles);
std::string bench_json(const std::vector<BenchRow>& rows, const std::string& command);

}  // namespace sinew
