// The secret that the ranks of a job share, and nobody else.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace sinew {

struct Token {
  std::array<std::byte, 32> bytes{};

  /// From the system's random numbers.
  static Token make();
  /// 64 hexadecimal digits. Throws Error{invalid_argument}, without showing them.
  static Token parse(std::string_view hex);
  [[nodiscard]] std::string hex() const;
  /// Takes as long for a guess that is nearly right as for any other.
  friend bool operator==(const Token& a, const Token& b) noexcept;
};

}  // namespace sinew
