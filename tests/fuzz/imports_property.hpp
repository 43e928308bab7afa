// What must hold of every import, whatever the file.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include <sinew/error.hpp>
#include "imports/import.hpp"
#include "report/finding.hpp"
#include "require.hpp"

/// Nothing: it was refused, with file and line.
inline std::optional<sinew::trace::Profile> imported(
    sinew::trace::Profile (*read)(std::span<const sinew::imports::Source>),
    const std::uint8_t* data, std::size_t bytes) {
  using namespace sinew;
  const imports::Source source{"file", {reinterpret_cast<const char*>(data), bytes}};
  imports::format_of(source.text);
  try {
    auto profile = read({&source, 1});
    require(!profile.ranks.empty(), "a profile has ranks");
    trace::sum_over_ranks(profile);
    for (const auto& rank : profile.ranks) {
      require(std::isfinite(rank.communication_ns) && std::isfinite(rank.elapsed_ns), "times");
      for (const auto& [key, totals] : rank.rows) {
        require(totals.calls > 0, "a row has calls");
        require(std::isfinite(totals.total_ns), "a row has a time");
        require(profile.rows.count(key) == 1, "rows of a rank are rows of all");
      }
    }
    for (const auto& finding : report::find_all(profile))
      require(!finding.claim.empty() && !finding.evidence.empty(), "findings have evidence");
    return profile;
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument, "bad files are invalid arguments");
    require(std::string_view(error.what()).starts_with("file:"), "errors name file and line");
    return {};
  }
}
