#include "cli/bench_emulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/arguments.hpp"

namespace sinew {
namespace {

using Unit = std::pair<std::string_view, double>;
constexpr std::array<Unit, 3> kRates{{{"Kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}}};
constexpr std::array<Unit, 2> kTimes{{{"us", 1e3}, {"ms", 1e6}}};

// A number and its unit; a negative result means that it is neither.
double measure(std::string_view text, std::span<const Unit> units) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto at = std::find_if(units.begin(), units.end(),
                               [&](const Unit& known) { return known.first == unit; });
  const bool good = status == std::errc{} && at != units.end() && value >= 0 && value < 1e6;
  return good ? value * at->second : -1;
}

[[noreturn]] void refuse(const std::string& text, std::string_view why) {
  throw Error(Errc::invalid_argument,
              fmt::format("--emulate {}: {}; write 2x4,1Gbit,1ms (two nodes of four ranks, the "
                          "rate of a node's link, the latency)",
                          text, why));
}

}  // namespace

Emulation parse_emulation(const std::string& text) {
  const auto words = split(text, ',');
  if (words.size() != 3) refuse(text, fmt::format("{} words instead of 3", words.size()));
  Emulation emulation;
  if (words[0].find('x') == std::string_view::npos)
    refuse(text, fmt::format("'{}' is not nodes x ranks", words[0]));
  emulation.node_of = parse_nodes(std::string(words[0]));
  emulation.bytes_per_second = measure(words[1], kRates);
  if (!(emulation.bytes_per_second > 0))
    refuse(text, fmt::format("'{}' is not a rate in Kbit, Mbit or Gbit", words[1]));
  const double latency_ns = measure(words[2], kTimes);
  if (latency_ns < 0) refuse(text, fmt::format("'{}' is not a time in us or ms", words[2]));
  emulation.latency = std::chrono::nanoseconds(static_cast<std::int64_t>(latency_ns));
  return emulation;
}

std::shared_ptr<LinkTimes> Emulation::links() const {
  return node_of.empty() ? nullptr : std::make_shared<LinkTimes>(node_of.back() + 1);
}

std::unique_ptr<Transport> Emulation::over(std::unique_ptr<Transport> inner,
                                           std::shared_ptr<LinkTimes> links) const {
  if (node_of.empty()) return inner;
  return std::make_unique<DelayedTransport>(
      std::move(inner), Delay{latency, bytes_per_second, node_of, std::move(links)});
}

}  // namespace sinew
