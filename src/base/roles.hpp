// What the exchanges of a compression scheme are for, as traces name them. A call tells its role by
// its tag, so that nothing else travels with it.
#pragma once

#include <cstdint>
#include <string_view>

namespace sinew {

inline constexpr std::string_view kRoles[] = {"agree",   "balance", "counts",     "dense",
                                              "gather",  "items",   "p",          "q",
                                              "regions", "split",   "thresholds", "values"};

/// No number that a user is likely to choose.
constexpr std::uint64_t role_tag(std::string_view role) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : role) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return hash | std::uint64_t{1} << 63U;
}

}  // namespace sinew
