#include "cli/bench_report.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "transport/cores.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

// nccl-tests: what crosses each link, as a share of the message.
double bus_factor(std::string_view collective, int ranks) {
  const double n = ranks;
  if (collective == "allreduce") return 2 * (n - 1) / n;
  if (collective == "broadcast" || collective == "reduce") return 1;
  return (n - 1) / n;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

Json machine() {
  utsname system{};
  uname(&system);
  double load[1] = {0};
  getloadavg(load, 1);
  const auto pages =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  char stamp[32];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {{"cpu", cpu_model()},
          {"cores", allowed_cores()},
          {"l2_bytes", sysconf(_SC_LEVEL2_CACHE_SIZE)},
          {"l3_bytes", sysconf(_SC_LEVEL3_CACHE_SIZE)},
          {"memory_gib", std::round(pages / 0x1p30)},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"load_average", load[0]},
          {"time", stamp}};
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

Json row_json(const BenchRow& row) {
  Json peers = Json::object();
  for (const auto& [name, times] : row.peers)
    peers[name] = {{"min_us", rounded(times.min_us)},
                   {"p50_us", rounded(times.p50_us)},
                   {"p99_us", rounded(times.p99_us)}};
  Json json{{"collective", row.collective},
            {"algorithm", row.algorithm},
            {"auto", row.automatic},
            {"transport", row.transport},
            {"ranks", row.ranks},
            {"bytes", row.bytes},
            {"dtype", name(row.dtype)},
            {"op", name(row.op)},
            {"buffers", row.buffers},
            {"in_place", row.in_place},
            {"root", row.root},
            {"min_us", rounded(row.ours.min_us)},
            {"p50_us", rounded(row.ours.p50_us)},
            {"p99_us", rounded(row.ours.p99_us)},
            {"algbw_gbs", rounded(row.algbw_gbs())},
            {"busbw_gbs", rounded(row.busbw_gbs())},
            {"wrong", row.wrong},
            {"peers", std::move(peers)}};
  if (!row.emulate.empty()) json["emulate"] = row.emulate;
  if (!row.knob.empty()) json["sweep"] = {{"knob", row.knob}, {"value", row.value}};
  if (row.speed) json["sweep"]["speed"] = rounded(*row.speed);
  json["best_peer"] = nullptr;
  json["ratio"] = nullptr;
  if (const auto ratio = row.ratio()) {
    json["best_peer"] = row.best_peer();
    json["ratio"] = rounded(*ratio);
    if (row.ratio_fast) json["ratio_fast_mode"] = rounded(*row.ratio_fast);
    if (row.ratio_slow) json["ratio_slow_mode"] = rounded(*row.ratio_slow);
  }
  Json probes = Json::array();
  for (const double probe : row.probes_us) probes.push_back(rounded(probe));
  json["probe_us"] = std::move(probes);
  return json;
}

constexpr std::size_t kSizeWidth = 11;
constexpr std::size_t kKnobWidth = 10;         // congestion
constexpr std::size_t kLongestAlgorithm = 18;  // recursive_doubling

std::string time_text(double us) {
  return us < 100     ? fmt::format("{:.2f}", us)
         : us < 10000 ? fmt::format("{:.1f}", us)
                      : fmt::format("{:.0f}", us);
}

}  // namespace

double BenchRow::algbw_gbs() const {
  return ours.p50_us > 0 ? static_cast<double>(bytes) / ours.p50_us / 1e3 : 0;
}
double BenchRow::busbw_gbs() const { return algbw_gbs() * bus_factor(collective, ranks); }

std::string BenchRow::best_peer() const {
  const auto at = std::min_element(peers.begin(), peers.end(), [](const auto& a, const auto& b) {
    return a.second.p50_us < b.second.p50_us;
  });
  return at == peers.end() ? "" : at->first;
}

std::optional<double> BenchRow::ratio() const {
  const auto best = best_peer();
  if (best.empty() || ours.p50_us <= 0) return {};
  return peers.at(best).p50_us / ours.p50_us;
}

BenchStyle parse_bench_style(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames{"nccl", "csv", "json"};
  const auto at = std::find(kNames.begin(), kNames.end(), text);
  if (at == kNames.end()) throw Error(Errc::invalid_argument, unknown("style", text, kNames));
  return static_cast<BenchStyle>(at - kNames.begin());
}

BenchTable::BenchTable(BenchStyle style, Shown shown, int columns)
    : style_(style), shown_(std::move(shown)) {
  if (style_ == BenchStyle::nccl) lay_out(static_cast<std::size_t>(columns));
}

void BenchTable::lay_out(std::size_t columns) {
  const Line size{
      {"size", "(B)", kSizeWidth, [](const BenchRow& row) { return std::to_string(row.bytes); }}};
  const Line swept{{shown_.knob, "", kKnobWidth, [](const BenchRow& row) { return row.value; }},
                   {"speed", "(1st=1)", 7, [](const BenchRow& row) {
                      return row.speed ? fmt::format("{:.2f}", *row.speed) : "-";
                    }}};
  // What is the same in all rows, or follows from the size.
  const Line same{
      {"count", "(elements)", 10, [](const BenchRow& row) { return std::to_string(row.count); }},
      {"type", "", 5, [](const BenchRow& row) { return std::string(name(row.dtype)); }},
      {"redop", "", 5, [](const BenchRow& row) { return std::string(name(row.op)); }},
      {"root", "", 4, [](const BenchRow& row) { return std::to_string(row.root); }}};
  Line ours = shown_.knob.empty() ? Line{} : swept;
  ours.push_back(
      {"time", "(us)", 9, [](const BenchRow& row) { return time_text(row.ours.p50_us); }});
  if (shown_.percentiles) {
    ours.push_back(
        {"min", "(us)", 9, [](const BenchRow& row) { return time_text(row.ours.min_us); }});
    ours.push_back(
        {"p99", "(us)", 9, [](const BenchRow& row) { return time_text(row.ours.p99_us); }});
  }
  ours.push_back({"algbw", "(GB/s)", 6,
                  [](const BenchRow& row) { return fmt::format("{:.2f}", row.algbw_gbs()); }});
  ours.push_back({"busbw", "(GB/s)", 6,
                  [](const BenchRow& row) { return fmt::format("{:.2f}", row.busbw_gbs()); }});
  ours.push_back({"#wrong", "", 6, [](const BenchRow& row) { return std::to_string(row.wrong); }});
  Line theirs;
  for (const auto& peer : shown_.peers)
    theirs.push_back(
        {peer, "(us)", std::max<std::size_t>(9, peer.size()), [peer](const BenchRow& row) {
           const auto at = row.peers.find(peer);
           return at == row.peers.end() ? "-" : time_text(at->second.p50_us);
         }});
  if (!shown_.peers.empty())
    theirs.push_back({"ratio", "", 6, [](const BenchRow& row) {
                        const auto ratio = row.ratio();
                        return ratio ? fmt::format("{:.2f}", *ratio) : "-";
                      }});
  if (shown_.algorithm)
    theirs.push_back(
        {"algorithm", "", kLongestAlgorithm, [](const BenchRow& row) { return row.algorithm; }});

  const auto joined = [](std::initializer_list<Line> parts) {
    Line line;
    for (const auto& part : parts) line.insert(line.end(), part.begin(), part.end());
    return line;
  };
  lines_ = {joined({size, same, ours, theirs})};
  if (width_of(lines_[0]) > columns) lines_ = {joined({size, ours, theirs})};
  if (width_of(lines_[0]) <= columns) return;
  lines_ = {joined({size, same, ours}), {}};
  if (width_of(lines_[0]) > columns) lines_[0] = joined({size, ours});
  for (auto& column : theirs) {  // as many lines as it takes
    if (lines_.back().empty())
      lines_.back().push_back({"", "", kSizeWidth, [](const BenchRow&) { return ""; }});
    if (width_of(lines_.back()) + 1 + column.width > columns)
      lines_.push_back({lines_.back().front()});
    lines_.back().push_back(std::move(column));
  }
}

std::size_t BenchTable::width_of(const Line& line) {
  std::size_t width = 0;
  for (const auto& column : line) width += column.width + 1;
  return width - 1;
}

// Columns to the right; `first` stands in front of the first.
template <class Text>
std::string BenchTable::written(const Line& line, char first, Text text) {
  std::string result;
  for (const auto& column : line) result += fmt::format(" {:>{}}", text(column), column.width);
  result.front() = first;
  result.erase(result.find_last_not_of(' ') + 1);
  return result + "\n";
}

std::string BenchTable::head() const {
  std::string text;
  if (style_ == BenchStyle::csv) {
    text =
        "collective,algorithm,transport,ranks,bytes,dtype,op,buffers,min_us,p50_us,p99_us,"
        "algbw_gbs,busbw_gbs,wrong";
    if (!shown_.knob.empty()) text += ",knob,value,speed";
    for (const auto& peer : shown_.peers) text += fmt::format(",{}_p50_us", peer);
    return text + (shown_.peers.empty() ? "\n" : ",best_peer,ratio\n");
  }
  for (const auto& line : lines_) {
    text += written(line, '#', [](const Column& column) { return column.title; });
    text += written(line, '#', [](const Column& column) { return column.unit; });
  }
  return text;
}

std::string BenchTable::line(const BenchRow& row) const {
  if (style_ == BenchStyle::csv) return csv_line(row);
  std::string text;
  for (const auto& line : lines_)
    text += written(line, ' ', [&](const Column& column) { return column.text(row); });
  return text;
}

std::string BenchTable::csv_line(const BenchRow& row) const {
  auto text =
      fmt::format("{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{}", row.collective,
                  row.algorithm, row.transport, row.ranks, row.bytes, name(row.dtype), name(row.op),
                  row.buffers, row.ours.min_us, row.ours.p50_us, row.ours.p99_us, row.algbw_gbs(),
                  row.busbw_gbs(), row.wrong);
  if (!shown_.knob.empty())
    text += fmt::format(",{},{},{}", row.knob, row.value,
                        row.speed ? fmt::format("{:.3f}", *row.speed) : "");
  for (const auto& peer : shown_.peers)
    text += row.peers.contains(peer) ? fmt::format(",{:.3f}", row.peers.at(peer).p50_us) : ",";
  if (!shown_.peers.empty())
    text += row.ratio() ? fmt::format(",{},{:.2f}", row.best_peer(), *row.ratio()) : ",,";
  return text + "\n";
}

std::string bench_json(const std::vector<BenchRow>& rows, const std::string& command) {
  Json results = Json::array();
  for (const auto& row : rows) results.push_back(row_json(row));
  return bench_document("sinew-bench/1", command, std::move(results)).dump(1) + "\n";
}

Json bench_document(std::string_view schema, const std::string& command, Json results) {
  return {{"schema", schema},
          {"sinew", SINEW_VERSION},
          {"command", command},
          {"machine", machine()},
          {"results", std::move(results)}};
}

}  // namespace sinew
