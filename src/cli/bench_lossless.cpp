// `sinew bench lossless`: lossless compression of one buffer, each way of it beside sending the
// bytes as they are over a link of a given rate.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include <sinew/lossless.hpp>
#include "base/counter_random.hpp"
#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/median.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;
using Bytes = std::vector<std::byte>;

struct LosslessBench {
  std::string bytes = "16M", data = "gradient", file, block = "256K", min_bytes = "4K";
  double link_gbs = 1;
  int rounds = 5;
  std::uint32_t shuffle = 4;
  bool json = false;
};

Bytes of_floats(std::size_t bytes, float (*value)(std::uint64_t)) {
  Bytes data(bytes);
  for (std::size_t i = 0; i + sizeof(float) <= bytes; i += sizeof(float)) {
    const float one = value(i / sizeof(float));
    std::memcpy(&data[i], &one, sizeof one);
  }
  return data;
}

float laplace(std::uint64_t i) {
  const float unit = random_unit(1, i) - 0.5F;
  return std::copysign(0.01F * std::log(1 - 2 * std::abs(unit) + 0x1p-24F), unit);
}
// Nine of ten are zero: what a sparse gradient is when it is sent densely.
float mostly_zero(std::uint64_t i) { return random_unit(2, i) < 0.9F ? 0.0F : laplace(i); }
// As bf16 leaves it: the lower half of every float is empty.
float coarse(std::uint64_t i) { return to_float(to_bf16(laplace(i))); }

Bytes noise(std::size_t bytes) {
  Bytes data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(random_bits(3, i));
  return data;
}

Bytes make_data(const LosslessBench& o) {
  if (!o.file.empty()) {
    const auto text = read_text(o.file);
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
  }
  const auto bytes = parse_bytes(o.bytes);
  if (o.data == "gradient") return of_floats(bytes, laplace);
  if (o.data == "sparse") return of_floats(bytes, mostly_zero);
  if (o.data == "coarse") return of_floats(bytes, coarse);
  if (o.data == "noise") return noise(bytes);
  if (o.data == "zeros") return Bytes(bytes);
  constexpr std::string_view kData[] = {"gradient", "sparse", "coarse", "noise", "zeros"};
  throw Error(Errc::invalid_argument, unknown("kind of data", o.data, kData));
}

struct Contender {
  std::string name;
  LosslessOptions options;
  LosslessReport report{};
  std::vector<double> encode_ms{}, decode_ms{};
};

std::vector<Contender> contenders(const LosslessBench& o) {
  const LosslessOptions base{.block_bytes = static_cast<std::uint32_t>(
                                 std::min(parse_bytes(o.block), std::uint64_t{1} << 30)),
                             .min_bytes = parse_bytes(o.min_bytes)};
  const auto with = [&](Codec codec, int level, bool shuffle, double rate = 0) {
    auto options = base;
    options.codec = codec;
    options.level = level;
    options.shuffle = shuffle ? o.shuffle : 1;
    options.link_bytes_per_second = rate;
    return options;
  };
  const double rate = o.link_gbs * 1e9;
  return {{"none", with(Codec::none, 1, false)},
          {"zlib block", with(Codec::zlib, 1, false)},
          {"lz4 frame", with(Codec::lz4_frame, 1, false)},
          {"lz4 block", with(Codec::lz4, 1, false)},
          {"lz4 block, fast", with(Codec::lz4, 16, false)},
          {"lz4 block, shuffled", with(Codec::lz4, 1, true)},
          {"zstd block", with(Codec::zstd, 1, false)},
          {"zstd block, shuffled", with(Codec::zstd, 1, true)},
          {"lz4 adaptive", with(Codec::lz4, 1, true, rate)},
          {"zstd adaptive", with(Codec::zstd, 1, true, rate)}};
}

double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

// One turn: encode, hand over, decode, compare. The copy in between is the link's, and not timed.
void take_turn(Contender& contender, LosslessEncoder& encoder, const Bytes& data, Bytes& wire,
               Bytes& back) {
  auto begin = std::chrono::steady_clock::now();
  const auto pieces = encoder.encode(data);
  contender.encode_ms.push_back(ms_since(begin));
  wire.clear();
  for (const auto piece : pieces) wire.insert(wire.end(), piece.begin(), piece.end());
  contender.report = encoder.report();
  begin = std::chrono::steady_clock::now();
  auto got = plain_view(wire);
  if (!got) {
    unpack(wire, back);
    got = back;
  }
  contender.decode_ms.push_back(ms_since(begin));
  if (!std::equal(got->begin(), got->end(), data.begin(), data.end()))
    throw Error(Errc::system, fmt::format("{}: other bytes came back", contender.name));
}

struct Figures {
  double encode_ms, decode_ms, wire_ms;
  [[nodiscard]] double total_ms() const { return encode_ms + wire_ms + decode_ms; }
};

Figures figures(const Contender& contender, double link_gbs) {
  return {median(contender.encode_ms), median(contender.decode_ms),
          static_cast<double>(contender.report.packed_bytes) / (link_gbs * 1e6)};
}

void print_table(const LosslessBench& o, const Bytes& data, const std::vector<Contender>& all) {
  fmt::print("{} of {}, a link of {} GB/s, p50 of {}:\n", human_bytes(data.size()),
             o.file.empty() ? o.data : o.file, o.link_gbs, o.rounds);
  using enum Align;
  Table table({{"way"},
               {"ratio", right},
               {"enc ms", right},
               {"dec ms", right},
               {"wire ms", right},
               {"GB/s", right},
               {"x none", right},
               {"blocks", right}});
  const auto none = figures(all.front(), o.link_gbs).total_ms();
  for (const auto& one : all) {
    const auto f = figures(one, o.link_gbs);
    table.add({one.name, fmt::format("{:.3f}", one.report.ratio()),
               fmt::format("{:.2f}", f.encode_ms), fmt::format("{:.2f}", f.decode_ms),
               fmt::format("{:.2f}", f.wire_ms),
               fmt::format("{:.2f}", static_cast<double>(data.size()) / f.total_ms() / 1e6),
               fmt::format("{:.2f}", none / f.total_ms()),
               fmt::format("{}/{}", one.report.compressed_blocks, one.report.blocks)});
  }
  fmt::print("{}", table.text());
  fmt::print(
      "ratio and times to encode and decode are measured, wire is bytes over the rate.\n"
      "GB/s and x none: the three one after the other. blocks: compressed of all.\n");
}

void print_json(const LosslessBench& o, const Bytes& data, const std::vector<Contender>& all) {
  Json rows = Json::array();
  const auto none = figures(all.front(), o.link_gbs).total_ms();
  for (const auto& one : all) {
    const auto f = figures(one, o.link_gbs);
    rows.push_back({{"way", one.name},
                    {"codec", name(one.options.codec)},
                    {"level", one.options.level},
                    {"shuffle", one.options.shuffle},
                    {"adaptive", one.options.link_bytes_per_second > 0},
                    {"ratio", one.report.ratio()},
                    {"packed_bytes", one.report.packed_bytes},
                    {"blocks", one.report.blocks},
                    {"compressed_blocks", one.report.compressed_blocks},
                    {"tried_bytes", one.report.tried_bytes},
                    {"encode_ms_p50", f.encode_ms},
                    {"decode_ms_p50", f.decode_ms},
                    {"wire_ms_modelled", f.wire_ms},
                    {"over_none", none / f.total_ms()}});
  }
  const Json document{{"schema", "sinew-bench-lossless"},
                      {"version", 1},
                      {"sinew", SINEW_VERSION},
                      {"bytes", data.size()},
                      {"data", o.file.empty() ? o.data : o.file},
                      {"link_gbs", o.link_gbs},
                      {"rounds", o.rounds},
                      {"results", rows}};
  fmt::print("{}\n", document.dump(1));
}

}  // namespace

int run_bench_lossless(int argc, char** argv) {
  LosslessBench o;
  CLI::App app("Times lossless compression beside none. Sizes K/M/G binary; GB/s decimal.",
               "sinew bench lossless");
  app.add_option("--bytes", o.bytes, "how much")->capture_default_str();
  app.add_option("--data", o.data,
                 "gradient, sparse (nine of ten zero), coarse (bf16 in f32), noise, zeros")
      ->capture_default_str();
  app.add_option("--file", o.file, "a file instead");
  app.add_option("--block", o.block, "bytes of a block")->capture_default_str();
  app.add_option("--min-bytes", o.min_bytes, "shorter data is left as it is")
      ->capture_default_str();
  app.add_option("--shuffle", o.shuffle, "bytes of an element, where bytes are shuffled")
      ->capture_default_str()
      ->check(between(1, 255));
  app.add_option("--link", o.link_gbs, "rate of the link, GB/s")
      ->capture_default_str()
      ->check(between(1e-6, 1e6));
  app.add_option("--rounds", o.rounds, "rounds; every way has a turn in each")
      ->capture_default_str()
      ->check(between(1, 10000));
  app.add_flag("--json", o.json, "one JSON document");
  if (const auto status = parse(app, argc, argv)) return *status;

  const auto data = make_data(o);
  auto all = contenders(o);
  Bytes wire, back(data.size());
  wire.reserve(data.size() + data.size() / 8 + 4096);
  std::vector<LosslessEncoder> encoders;
  for (const auto& one : all) encoders.emplace_back(one.options);
  ProgressLine progress;
  for (int round = 0; round < o.rounds; ++round)
    for (std::size_t i = 0; i < all.size(); ++i) {
      progress.show(fmt::format("round {} of {}: {}", round + 1, o.rounds, all[i].name));
      take_turn(all[i], encoders[i], data, wire, back);
    }
  progress.clear();
  o.json ? print_json(o, data, all) : print_table(o, data, all);
  return kFine;
}

}  // namespace sinew
