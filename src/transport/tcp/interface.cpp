#include "transport/tcp/interface.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "transport/rendezvous/socket.hpp"

namespace sinew {
namespace {

// Made by container and virtual-machine software; other hosts cannot reach what is behind them.
constexpr std::array<std::string_view, 6> kInner{"docker", "virbr", "br-", "veth", "cni", "podman"};

std::string text_of(const sockaddr* address) {
  std::array<char, NI_MAXHOST> host{};
  const socklen_t bytes =
      address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (::getnameinfo(address, bytes, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "";
  return host.data();
}

/// An address or network as bytes.
struct Network {
  std::array<unsigned char, 16> bytes{};
  int family = 0;
  int bits = 0;  // that count
};

std::optional<Network> parse_network(std::string_view text) {
  Network network;
  const auto slash = text.find('/');
  const std::string address(text.substr(0, slash));
  for (const int family : {AF_INET, AF_INET6})
    if (::inet_pton(family, address.c_str(), network.bytes.data()) == 1) network.family = family;
  if (network.family == 0) return {};
  const int most = network.family == AF_INET ? 32 : 128;
  network.bits = most;
  if (slash == std::string_view::npos) return network;
  const auto digits = text.substr(slash + 1);
  const auto [end, status] =
      std::from_chars(digits.data(), digits.data() + digits.size(), network.bits);
  if (status != std::errc{} || end != digits.data() + digits.size() || network.bits < 0 ||
      network.bits > most)
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' is not a network; write 10.1.0.0/16 or fd00::/8", text));
  return network;
}

bool contains(const Network& network, const Network& host) {
  if (network.family != host.family) return false;
  for (int bit = 0; bit < network.bits; ++bit) {
    const auto at = static_cast<std::size_t>(bit / 8);
    const int mask = 0x80 >> bit % 8;
    if ((network.bytes[at] & mask) != (host.bytes[at] & mask)) return false;
  }
  return true;
}

bool matches(const InterfaceAddress& candidate, std::string_view word, bool exactly) {
  if (const auto network = parse_network(word)) {
    const auto host = parse_network(candidate.address);
    return host && contains(*network, *host);
  }
  return exactly ? candidate.interface == word : candidate.interface.starts_with(word);
}

std::string describe(std::span<const InterfaceAddress> found) {
  std::vector<std::string> texts;
  for (const auto& [interface, address, loopback] : found)
    texts.push_back(fmt::format("{} ({})", interface, address));
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

const InterfaceAddress* choose_named(std::span<const InterfaceAddress> found,
                                     std::string_view wanted) {
  for (const auto word : split(wanted, ','))
    for (const bool exactly : {true, false})  // eth1 is itself before it is the beginning of eth10
      for (const auto& candidate : found)
        if (!word.empty() && matches(candidate, word, exactly)) return &candidate;
  return nullptr;
}

const InterfaceAddress* choose_other(std::span<const InterfaceAddress> found,
                                     std::span<const std::string_view> excluded, bool others) {
  for (const auto& candidate : found) {
    const auto is_meant = [&](std::string_view word) {
      return !word.empty() && matches(candidate, word, false);
    };
    if (candidate.is_loopback == others) continue;
    if (std::none_of(excluded.begin(), excluded.end(), is_meant)) return &candidate;
  }
  return nullptr;
}

}  // namespace

std::vector<InterfaceAddress> list_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    throw Error(Errc::system, fmt::format("cannot list the interfaces: {}", std::strerror(errno)));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family ||
          (entry->ifa_flags & IFF_UP) == 0)
        continue;
      sockaddr_in6 six{};
      if (family == AF_INET6) std::memcpy(&six, entry->ifa_addr, sizeof six);
      if (IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr)) continue;
      found.push_back(
          {entry->ifa_name, text_of(entry->ifa_addr), (entry->ifa_flags & IFF_LOOPBACK) != 0});
    }
  return found;
}

std::string choose_address(std::span<const InterfaceAddress> found, std::string_view wanted,
                           bool others) {
  const InterfaceAddress* chosen = nullptr;
  if (wanted.starts_with('^'))
    chosen = choose_other(found, split(wanted.substr(1), ','), others);
  else if (!wanted.empty())
    chosen = choose_named(found, wanted);
  else
    chosen = choose_other(
        found,
        others ? std::span<const std::string_view>(kInner) : std::span<const std::string_view>(),
        others);
  if (chosen != nullptr) return chosen->address;
  if (wanted.empty())
    throw Error(Errc::invalid_argument,
                fmt::format("no interface that {} can use; found: {}. Name one by SINEW_IFACE",
                            others ? "other hosts" : "ranks of this host", describe(found)));
  throw Error(Errc::invalid_argument,
              fmt::format("no interface fits '{}' (SINEW_IFACE); found: {}. Write a name (eth0), "
                          "the beginning of one (eth), a network (10.1.0.0/16) or exclusions "
                          "(^docker,lo)",
                          wanted, describe(found)));
}

std::string address_toward(const Address& there) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (::getaddrinfo(there.place.c_str(), std::to_string(there.port).c_str(), &wanted, &list) != 0)
    return "";
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const Socket socket(::socket(entry->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage mine{};
    socklen_t bytes = sizeof mine;
    // Connecting a datagram socket only looks up the route.
    if (socket.get() >= 0 && ::connect(socket.get(), entry->ai_addr, entry->ai_addrlen) == 0 &&
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&mine), &bytes) == 0)
      return text_of(reinterpret_cast<const sockaddr*>(&mine));
  }
  return "";
}

}  // namespace sinew
