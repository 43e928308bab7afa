// What the exchanges of a scheme are for, as the tag of their calls, so that traces can tell them
// apart.
#pragma once

#include <cstdint>
#include <string_view>

namespace sinew {

/// `phase`: as in PhaseBytes.
constexpr std::uint64_t role_tag(std::string_view phase) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a: the names are short
  for (const char c : phase) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

}  // namespace sinew
