#include "cli/bench_sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

bool on_or_off(std::string_view value) {
  constexpr std::array<std::string_view, 2> kWords{"on", "off"};
  if (std::find(kWords.begin(), kWords.end(), value) == kWords.end())
    throw Error(Errc::invalid_argument, unknown("value", value, kWords));
  return value == "on";
}

int number(std::string_view value) {
  int result = 0;
  const auto* end = value.data() + value.size();
  const auto [at, status] = std::from_chars(value.data(), end, result);
  if (status != std::errc{} || at != end)
    throw Error(Errc::invalid_argument, fmt::format("'{}' is not a number", value));
  return result;
}

struct Knob {
  std::string_view name;
  std::vector<std::string_view> transports;  // that have it; none: all
  void (*set)(BenchSetup& setup, std::string_view value);
};

/// The only list of knobs.
const std::vector<Knob>& knobs() {
  using Setup = BenchSetup;
  using Value = std::string_view;
  static const std::vector<Knob> all{
      {"sockbuf", {"tcp"}, [](Setup& s, Value v) { s.tcp.sockbuf = parse_bytes(v); }},
      {"frame", {"tcp"}, [](Setup& s, Value v) { s.tcp.chunk = parse_bytes(v); }},
      {"slice", {"tcp"}, [](Setup& s, Value v) { s.tcp.slice = parse_bytes(v); }},
      {"streams", {"tcp"}, [](Setup& s, Value v) { s.tcp.streams = number(v); }},
      {"checksum", {"tcp"}, [](Setup& s, Value v) { s.tcp.checksum = on_or_off(v); }},
      {"tls", {"tcp"}, [](Setup& s, Value v) { s.tcp.tls = on_or_off(v); }},
      {"congestion", {"tcp"}, [](Setup& s, Value v) { s.tcp.congestion = v; }},
      {"slot", {"shm", "local"}, [](Setup& s, Value v) { s.slot_bytes = parse_bytes(v); }},
      {"pull", {"shm"}, [](Setup& s, Value v) { s.pull = on_or_off(v); }},
      {"bind", {"shm", "tcp"}, [](Setup& s, Value v) { s.bind = on_or_off(v); }},
      {"chunk", {}, [](Setup& s, Value v) { s.chunk_bytes = parse_bytes(v); }},
  };
  return all;
}

const Knob& find_knob(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& knob : knobs()) {
    if (knob.name == name) return knob;
    names.push_back(knob.name);
  }
  throw Error(Errc::invalid_argument, unknown("knob", name, names));
}

}  // namespace

Sweep parse_sweep(const std::string& text, std::string_view transport) {
  const auto equals = text.find('=');
  Sweep sweep{text.substr(0, equals), {}};
  const auto& knob = find_knob(sweep.knob);
  if (!knob.transports.empty() &&
      std::find(knob.transports.begin(), knob.transports.end(), transport) == knob.transports.end())
    throw Error(Errc::invalid_argument,
                fmt::format("--sweep {}: {} has no {}; it belongs to --transport {}", text,
                            transport, knob.name, fmt::join(knob.transports, " or ")));
  if (equals != std::string::npos)
    for (const auto value : split(std::string_view(text).substr(equals + 1), ','))
      sweep.values.emplace_back(value);
  if (sweep.values.size() < 2)
    throw Error(Errc::invalid_argument,
                fmt::format("--sweep {}: name several values to compare, as in {}=A,B,C", text,
                            sweep.knob));
  for (const auto& value : sweep.values) (void)with_knob({}, sweep.knob, value);
  return sweep;
}

BenchSetup with_knob(BenchSetup setup, std::string_view knob, std::string_view value) {
  find_knob(knob).set(setup, value);
  return setup;
}

}  // namespace sinew
