#include "transport/trust/proof.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include <sinew/error.hpp>

namespace sinew {

Proof prove(const Token& token, std::span<const std::byte> said) {
  Proof proof{};
  unsigned bytes = 0;
  const auto* text = reinterpret_cast<const unsigned char*>(said.data());
  auto* out = reinterpret_cast<unsigned char*>(proof.data());
  if (HMAC(EVP_sha256(), token.bytes.data(), static_cast<int>(token.bytes.size()), text,
           said.size(), out, &bytes) == nullptr ||
      bytes != proof.size())
    throw Error(Errc::system, "OpenSSL computes no HMAC-SHA256");
  return proof;
}

bool equal(const Proof& proof,
           std::span<const std::byte, std::tuple_size_v<Proof>> other) noexcept {
  return CRYPTO_memcmp(proof.data(), other.data(), proof.size()) == 0;
}

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const auto got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EINTR)
      throw Error(Errc::system,
                  fmt::format("the kernel gives no random numbers: {}", std::strerror(errno)));
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void forget(std::span<std::byte> secret) noexcept { OPENSSL_cleanse(secret.data(), secret.size()); }

}  // namespace sinew
