// Rows of a benchmark and the ways to print them.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sinew/types.hpp>
#include "measure/result.hpp"

namespace sinew {

/// One measured cell: ours, and the peers that ran beside it.
struct BenchRow {
  bool automatic = false;  // the library chose the algorithm
  std::string collective, algorithm, transport, buffers;
  std::string emulate;  // the network that was emulated, or ""
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
  std::string knob, value;                       // what a sweep varies, or ""
  std::optional<double> speed;                   // with its first value as 1

  [[nodiscard]] double algbw_gbs() const;
  [[nodiscard]] double busbw_gbs() const;
  /// The fastest peer by median, "" without peers.
  [[nodiscard]] std::string best_peer() const;
  [[nodiscard]] std::optional<double> ratio() const;
};

enum class BenchStyle : std::uint8_t { nccl, csv, json };
BenchStyle parse_bench_style(std::string_view text);

/// Rows as text, printed as they come. JSON waits for the end and has none.
class BenchTable {
 public:
  struct Shown {
    std::vector<std::string> peers;
    bool percentiles = false;
    bool algorithm = false;  // at the end of a row; in csv always
    std::string knob{};      // of a sweep
  };
  /// nccl: the columns of nccl-tests, or where those do not fit into `columns` of the terminal,
  /// less what is the same in all rows and with the peers in a line of their own.
  BenchTable(BenchStyle style, Shown shown, int columns);

  [[nodiscard]] std::string head() const;
  [[nodiscard]] std::string line(const BenchRow& row) const;

 private:
  struct Column {
    std::string title, unit;
    std::size_t width;
    std::function<std::string(const BenchRow&)> text;
  };
  using Line = std::vector<Column>;
  static std::size_t width_of(const Line& line);
  template <class Text>
  static std::string written(const Line& line, char first, Text text);
  void lay_out(std::size_t columns);
  [[nodiscard]] std::string csv_line(const BenchRow& row) const;

  BenchStyle style_;
  Shown shown_;
  std::vector<Line> lines_;  // of one row
};

std::string bench_json(const std::vector<BenchRow>& rows, const std::string& command);
/// Results with what they came from: the command, and the machine's facts.
nlohmann::ordered_json bench_document(std::string_view schema, const std::string& command,
                                      nlohmann::ordered_json results);

}  // namespace sinew
