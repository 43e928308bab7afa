#include "model/training_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "model/run_settings.hpp"
#include "model/scheme_phases.hpp"

namespace sinew {
namespace {

constexpr double kMost = 1e15;

using Run = TrainingRun;

void check_word(std::string_view kind, std::string_view word,
                std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), word) == known.end())
    throw Error(Errc::invalid_argument, unknown(kind, word, known));
}

// "link.nic.gbytes_per_s" is "link.gbytes_per_s" of a link called nic.
std::string without_link_name(std::string_view key, const std::string& link) {
  const std::string prefix = "link." + link + ".";
  return key.starts_with(prefix) ? "link." + std::string(key.substr(prefix.size()))
                                 : std::string(key);
}

}  // namespace

const RunSetting* find_setting(std::string_view key) {
  for (const auto& setting : run_settings())
    if (setting.key == key || (!setting.alias.empty() && setting.alias == key)) return &setting;
  return nullptr;
}

std::string unknown_key(std::string_view key, const Run& run) {
  std::vector<std::string_view> known{"scheme", "pattern"};
  for (const auto& setting : run_settings()) {
    known.push_back(setting.key);
    if (!setting.alias.empty()) known.push_back(setting.alias);
  }
  if (key.starts_with("link."))
    return fmt::format(
        "there is no '{}': the link here is called '{}', with alpha_us and "
        "gbytes_per_s",
        key, run.link_name);
  return unknown("input of a run", key, known);
}

void check_range(const RunSetting& setting, double value) {
  const bool fits = std::isfinite(value) && value >= setting.least && value <= setting.most;
  if (!fits || (setting.whole && value != std::floor(value)))
    throw Error(
        Errc::invalid_argument,
        fmt::format("{} = {} is impossible: {} from {} to {} is possible", setting.key, value,
                    setting.whole ? "a whole number" : "a number", setting.least, setting.most));
}

std::span<const std::string_view> run_patterns() {
  static constexpr std::array<std::string_view, 3> kPatterns{"ddp", "zero3", "moe"};
  return kPatterns;
}

double TrainingRun::gradient_bytes() const {
  return std::accumulate(buckets.begin(), buckets.end(), 0.0,
                         [](double sum, const RunBucket& bucket) { return sum + bucket.bytes; });
}

const std::vector<RunSetting>& run_settings() {
  static const std::vector<RunSetting> settings{
      {"step.workers", "", &Run::workers, 1, 1 << 24, true},
      {"step.steps", "steps", &Run::steps, 0, kMost, true},
      {"step.batch", "batch", &Run::batch, 1, kMost, true},
      {"step.element_bytes", "", &Run::element_bytes, 1, 8, true},
      {"step.forward_ms", "forward_ms", &Run::forward_ms, 0, kMost},
      {"step.backward_ms", "backward_ms", &Run::backward_ms, 0, kMost},
      {"step.update_ms", "update_ms", &Run::update_ms, 0, kMost},
      {"step.data_ms", "data_ms", &Run::data_ms, 0, kMost},
      {"step.spread", "spread", &Run::spread, 0, 10},
      {"step.overlap", "overlap", &Run::overlap, 0, 1, true},
      {"step.slowdown", "slowdown", &Run::slowdown, 0, 100},
      {"step.local_steps", "local_steps", &Run::local_steps, 1, 1e9, true},
      {"step.fragments", "fragments", &Run::fragments, 1, 1e6, true},
      {"compression.density", "density", &Run::density, 1e-9, 1},
      {"compression.item_bytes", "item_bytes", &Run::item_bytes, 1, 64},
      {"compression.fill", "fill", &Run::fill, 0, kMost},
      {"compression.imbalance", "imbalance", &Run::imbalance, 1, 1e6},
      {"compression.select_ms", "select_ms", &Run::select_ms, 0, kMost},
      {"link.alpha_us", "alpha_us", &Run::alpha_us, 0, kMost},
      {"link.gbytes_per_s", "gbytes_per_s", &Run::gbytes_per_s, 1e-9, 1e9},
      {"link.gamma_gbytes_per_s", "", &Run::gamma_gbytes_per_s, 0, 1e9},
      {"island.workers", "", &Run::island_workers, 0, 1 << 24, true},
      {"island.alpha_us", "", &Run::island_alpha_us, 0, kMost},
      {"island.gbytes_per_s", "", &Run::island_gbytes_per_s, 1e-9, 1e9},
      {"island.uplinks", "", &Run::island_uplinks, 1, 1 << 24, true},
      {"moe.layers", "", &Run::moe_layers, 0, 1e6, true},
      {"moe.bytes", "", &Run::moe_bytes, 0, kMost},
      {"moe.imbalance", "", &Run::moe_imbalance, 1, 1e6},
  };
  return settings;
}

std::string apply_setting(TrainingRun& run, std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == assignment.size())
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' sets nothing: write --set density=0.01", assignment));
  const auto key = assignment.substr(0, equals);
  const std::string value(assignment.substr(equals + 1));
  if (key == "scheme" || key == "compression.scheme") {
    check_word("compression scheme", value, modelled_schemes());
    run.scheme = value;
    return "scheme";
  }
  if (key == "pattern" || key == "step.pattern") {
    check_word("pattern", value, run_patterns());
    run.pattern = value;
    return "pattern";
  }
  const auto* setting = find_setting(without_link_name(key, run.link_name));
  if (setting == nullptr) throw Error(Errc::invalid_argument, unknown_key(key, run));
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (end != value.c_str() + value.size())
    throw Error(Errc::invalid_argument, fmt::format("{}: '{}' is not a number", key, value));
  check_range(*setting, number);
  if (setting->value == &Run::batch && !(run.described_batch > 0))
    throw Error(Errc::invalid_argument,
                "--set batch needs to know the batch that the times hold for: say step.batch in "
                "the description");
  run.*setting->value = number;
  return std::string(key);
}

namespace {

Curve with_link(const Curve& curve, double alpha_us, double gbytes_per_s) {
  auto segments = curve.segments();
  for (auto& segment : segments) {
    if (alpha_us >= 0) segment.alpha_ps = alpha_us * 1e6;
    if (gbytes_per_s > 0) segment.byte_ps = 1e3 / gbytes_per_s;
  }
  return segments.empty() ? curve : Curve(std::move(segments));
}

}  // namespace

Network network_of(const TrainingRun& run, const Network* given) {
  if (given == nullptr && !(run.alpha_us >= 0 && run.gbytes_per_s > 0))
    throw Error(Errc::invalid_argument,
                "over what network? Say --net FILE, --net alpha=5us,bw=25GB/s, or [link] with "
                "alpha_us and gbytes_per_s in the description");
  Network network;
  if (given != nullptr) {
    network = *given;
    network.one_way = with_link(network.one_way, run.alpha_us, run.gbytes_per_s);
    network.exchange = with_link(network.exchange, run.alpha_us, run.gbytes_per_s);
  } else {
    network.name = run.link_name;
    network.one_way = Curve(run.alpha_us * 1e6, 1e3 / run.gbytes_per_s);
    network.eager_bytes = -1;
  }
  if (run.gamma_gbytes_per_s > 0) network.reduce = Curve(0, 1e3 / run.gamma_gbytes_per_s);
  return network;
}

Network island_of(const TrainingRun& run, const Network& network) {
  if (!(run.island_gbytes_per_s > 0))
    throw Error(Errc::invalid_argument, "[island] needs gbytes_per_s, the rate of its fast link");
  Network inside = network;
  inside.one_way = Curve(run.island_alpha_us * 1e6, 1e3 / run.island_gbytes_per_s);
  inside.exchange = {};
  inside.board.reset();
  return inside;
}

}  // namespace sinew
