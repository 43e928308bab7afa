// What people say about compression in training: "oktopk:0.02", "bf16", "dgc:0.25@0,0.01@500".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <sinew/compression.hpp>

namespace sinew {

struct CompressionSpec {
  std::string scheme = "dense";
  /// Density from a step on, ascending; schemes that select nothing have none.
  struct Stage {
    std::uint64_t step = 0;
    double density = 0;
    friend bool operator==(const Stage&, const Stage&) = default;
  };
  std::vector<Stage> stages;
  std::uint64_t warmup = 0;  // so many dense steps first
  std::map<std::string, double> parameters;

  [[nodiscard]] bool is_dense() const noexcept { return scheme == "dense"; }
  /// Which stage a step is in: an index, 0 where there are none.
  [[nodiscard]] std::size_t stage_at(std::uint64_t step) const noexcept;
  /// For a compressor of that stage.
  [[nodiscard]] CompressionOptions options(std::size_t stage) const;
};

/// SCHEME[:DENSITY[@STEP],...]. Throws Error{invalid_argument} for an unknown scheme, a density out
/// of (0, 1], steps that do not ascend, and a density for a scheme that has none.
CompressionSpec parse_compression(std::string_view text);

}  // namespace sinew
