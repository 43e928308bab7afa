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

std::size_t peer_width(std::string_view peer) { return std::max<std::size_t>(9, peer.size()); }

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

std::string bench_head(BenchStyle style, const std::vector<std::string>& peers, bool percentiles) {
  std::string text;
  if (style == BenchStyle::csv) {
    text =
        "collective,algorithm,transport,ranks,bytes,dtype,op,buffers,min_us,p50_us,p99_us,algbw_"
        "gbs,busbw_gbs,wrong";
    for (const auto& peer : peers) text += fmt::format(",{}_p50_us", peer);
    return text + (peers.empty() ? "\n" : ",best_peer,ratio\n");
  }
  if (style == BenchStyle::json) return "";
  text = fmt::format("#{:>11} {:>10} {:>5} {:>5} {:>4} {:>9}", "size", "count", "type", "redop",
                     "root", "time");
  if (percentiles) text += fmt::format(" {:>9} {:>9}", "min", "p99");
  text += fmt::format(" {:>6} {:>6} {:>6}", "algbw", "busbw", "#wrong");
  for (const auto& peer : peers) text += fmt::format(" {:>{}}", peer, peer_width(peer));
  if (!peers.empty()) text += fmt::format(" {:>6}", "ratio");
  text += fmt::format("\n#{:>11} {:>10} {:>5} {:>5} {:>4} {:>9}", "(B)", "(elements)", "", "", "",
                      "(us)");
  if (percentiles) text += fmt::format(" {:>9} {:>9}", "(us)", "(us)");
  text += fmt::format(" {:>6} {:>6} {:>6}", "(GB/s)", "(GB/s)", "");
  for (const auto& peer : peers) text += fmt::format(" {:>{}}", "(us)", peer_width(peer));
  return text + "\n";
}

std::string bench_line(BenchStyle style, const BenchRow& row, const std::vector<std::string>& peers,
                       bool percentiles) {
  if (style == BenchStyle::json) return "";
  std::string text;
  if (style == BenchStyle::csv) {
    text = fmt::format("{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{}",
                       row.collective, row.algorithm, row.transport, row.ranks, row.bytes,
                       name(row.dtype), name(row.op), row.buffers, row.ours.min_us, row.ours.p50_us,
                       row.ours.p99_us, row.algbw_gbs(), row.busbw_gbs(), row.wrong);
    for (const auto& peer : peers)
      text += row.peers.contains(peer) ? fmt::format(",{:.3f}", row.peers.at(peer).p50_us) : ",";
    if (!peers.empty())
      text += row.ratio() ? fmt::format(",{},{:.2f}", row.best_peer(), *row.ratio()) : ",,";
    return text + "\n";
  }
  text = fmt::format("{:>12} {:>10} {:>5} {:>5} {:>4} {:>9}", row.bytes, row.count, name(row.dtype),
                     name(row.op), row.root, time_text(row.ours.p50_us));
  if (percentiles)
    text += fmt::format(" {:>9} {:>9}", time_text(row.ours.min_us), time_text(row.ours.p99_us));
  text += fmt::format(" {:>6.2f} {:>6.2f} {:>6}", row.algbw_gbs(), row.busbw_gbs(), row.wrong);
  for (const auto& peer : peers)
    text += fmt::format(" {:>{}}",
                        row.peers.contains(peer) ? time_text(row.peers.at(peer).p50_us) : "-",
                        peer_width(peer));
  if (const auto ratio = row.ratio()) text += fmt::format(" {:>6.2f}", *ratio);
  return text + "\n";
}

std::string bench_json(const std::vector<BenchRow>& rows, const std::string& command) {
  Json results = Json::array();
  for (const auto& row : rows) results.push_back(row_json(row));
  return Json{{"schema", "sinew-bench/1"},
              {"sinew", SINEW_VERSION},
              {"command", command},
              {"machine", machine()},
              {"results", std::move(results)}}
             .dump(1) +
         "\n";
}

}  // namespace sinew
