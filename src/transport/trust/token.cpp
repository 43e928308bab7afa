#include "transport/trust/token.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <sinew/error.hpp>
#include "transport/trust/proof.hpp"

namespace sinew {
namespace {

int digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

}  // namespace

Token Token::make() {
  Token token;
  fill_random(token.bytes);
  return token;
}

Token Token::parse(std::string_view hex) {
  Token token;
  if (hex.size() != 2 * token.bytes.size())
    throw Error(Errc::invalid_argument,
                fmt::format("a token has {} hexadecimal digits, this one {} characters; "
                            "`openssl rand -hex 32` makes one",
                            2 * token.bytes.size(), hex.size()));
  for (std::size_t i = 0; i < token.bytes.size(); ++i) {
    const int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0)
      throw Error(Errc::invalid_argument,
                  fmt::format("a token is written in hexadecimal digits; character {} is none",
                              2 * i + (high < 0 ? 1 : 2)));
    token.bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  return token;
}

std::string Token::hex() const {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

bool operator==(const Token& a, const Token& b) noexcept {
  return CRYPTO_memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

}  // namespace sinew
