// Showing that one knows a token without showing the token: HMAC-SHA256 over what both ends said.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "transport/trust/token.hpp"

namespace sinew {

using Proof = std::array<std::byte, 32>;

/// Throws Error{system} where OpenSSL has no SHA-256.
Proof prove(const Token& token, std::span<const std::byte> said);

/// Takes as long for a proof that is nearly right as for any other.
bool equal(const Proof& proof, std::span<const std::byte, std::tuple_size_v<Proof>> other) noexcept;

/// Throws Error{system} when the system gives none.
void fill_random(std::span<std::byte> bytes);

/// Overwrites a secret that is no longer needed; the compiler cannot leave it out.
void forget(std::span<std::byte> secret) noexcept;

}  // namespace sinew
