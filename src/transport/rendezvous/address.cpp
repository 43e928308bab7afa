#include "transport/rendezvous/address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include <sinew/error.hpp>

namespace sinew {
namespace {

constexpr std::size_t kLongestName = 80;   // an abstract socket's, with room for what is appended
constexpr std::size_t kLongestHost = 255;  // as names in DNS

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw Error(Errc::invalid_argument,
              fmt::format("address '{}': {}; write tcp://host:port, tcp://[::1]:port, "
                          "file:///folder, or a plain name for ranks of one host",
                          text, why));
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

bool is_host_letter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '-' || c == '_';
}

// Of [::1] or [fe80::1%eth0].
bool is_ipv6_letter(char c) { return is_host_letter(c) || c == ':' || c == '%'; }

std::uint16_t parse_port(std::string_view text, std::string_view whole) {
  std::uint16_t port = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (status != std::errc{} || end != text.data() + text.size() || port == 0)
    refuse(whole, fmt::format("'{}' is not a port (1 to 65535)", text));
  return port;
}

Address parse_tcp(std::string_view rest, std::string_view whole) {
  const bool bracketed = rest.starts_with('[');
  const auto close = rest.find(']');
  if (bracketed && close == std::string_view::npos) refuse(whole, "']' is missing");
  const auto host = bracketed ? rest.substr(1, close - 1) : rest.substr(0, rest.find(':'));
  const auto after = rest.substr(bracketed ? close + 1 : host.size());
  if (after.empty() || after.front() != ':') refuse(whole, "the port is missing");
  if (after.find(':', 1) != std::string_view::npos)
    refuse(whole, "an IPv6 address stands in brackets");
  if (host.empty() || host.size() > kLongestHost ||
      !std::all_of(host.begin(), host.end(), bracketed ? is_ipv6_letter : is_host_letter))
    refuse(whole, fmt::format("'{}' is not a host", host));
  return {Address::Kind::tcp, std::string(host), parse_port(after.substr(1), whole)};
}

}  // namespace

Address Address::parse(std::string_view text) {
  if (!is_printable(text)) refuse("...", "it contains blanks or characters that do not print");
  const auto colon = text.find("://");
  if (colon == std::string_view::npos) {
    if (text.empty() || text.size() > kLongestName)
      refuse(text, fmt::format("a name has 1 to {} characters", kLongestName));
    return {Kind::name, std::string(text), 0};
  }
  const auto scheme = text.substr(0, colon), rest = text.substr(colon + 3);
  if (scheme == "tcp") return parse_tcp(rest, text);
  if (scheme != "file") refuse(text, fmt::format("'{}' is not known here", scheme));
  if (!rest.starts_with('/')) refuse(text, "the folder must be absolute (three slashes)");
  return {Kind::file, std::string(rest), 0};
}

std::string to_string(const Address& address) {
  switch (address.kind) {
    case Address::Kind::tcp: {
      const bool six = address.place.find(':') != std::string::npos;
      return fmt::format("tcp://{}{}{}:{}", six ? "[" : "", address.place, six ? "]" : "",
                         address.port);
    }
    case Address::Kind::file:
      return "file://" + address.place;
    case Address::Kind::name:
      break;
  }
  return address.place;
}

}  // namespace sinew
