// A network in one line: alpha=5us,bw=25GB/s, and as people read it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/network_file.hpp"

namespace sinew {
namespace {

constexpr std::array<std::string_view, 6> kKeys{"alpha", "bw",   "exchange",
                                                "gamma", "copy", "eager"};

std::map<std::string_view, std::string_view> parse_pairs(std::string_view text) {
  std::map<std::string_view, std::string_view> values;
  for (const auto word : split(text, ',')) {
    const auto equals = word.find('=');
    const auto key = word.substr(0, equals);
    if (equals == std::string_view::npos)
      throw Error(
          Errc::invalid_argument,
          fmt::format("'{}' in the network '{}' has no value; write alpha=5us,bw=25GB/s, or "
                      "name a model file",
                      word, text));
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
      throw Error(Errc::invalid_argument, unknown("part of a network", key, kKeys));
    if (!values.emplace(key, word.substr(equals + 1)).second)
      throw Error(Errc::invalid_argument, fmt::format("'{}' is there twice in '{}'", key, text));
  }
  return values;
}

}  // namespace

Network parse_network_line(std::string_view text) {
  const auto values = parse_pairs(text);
  for (const std::string_view needed : {"alpha", "bw"})
    if (!values.contains(needed))
      throw Error(
          Errc::invalid_argument,
          fmt::format("the network '{}' lacks {}; write alpha=5us,bw=25GB/s", text, needed));
  const auto rate = [&](std::string_view key, double alpha) {
    const auto at = values.find(key);
    return at == values.end() ? Curve() : Curve(alpha, parse_rate_byte_ps(at->second));
  };
  const double alpha = parse_time_ps(values.at("alpha"));
  Network network;
  network.name = text;
  network.one_way = rate("bw", alpha);
  network.exchange = rate("exchange", alpha);
  network.reduce = rate("gamma", 0);
  network.copy = rate("copy", 0);
  network.eager_bytes =
      values.contains("eager") ? static_cast<double>(parse_bytes(values.at("eager"))) : -1;
  return network;
}

std::string describe(const Network& network) {
  const auto& from = network.provenance;
  if (from.ranks > 0)
    return fmt::format("'{}', measured on {} at {} with {} ranks", network.name, from.host,
                       from.date, from.ranks);
  const auto& segments = network.one_way.segments();
  std::string text = fmt::format("{} and {} a message", human_time_ps(segments.back().alpha_ps),
                                 human_rate(segments.back().byte_ps));
  if (segments.size() > 1) text = fmt::format("'{}'", network.name);
  return text + ", nothing of it measured";
}

}  // namespace sinew
