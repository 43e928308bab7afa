#include "transport/tcp/socket.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include <sinew/error.hpp>

namespace sinew::tcp {
namespace {

[[noreturn]] void system_error(std::string_view what) {
  const auto hint = errno == EMFILE || errno == ENFILE
                        ? "; every pair of ranks needs a few, raise the limit (ulimit -n)"
                        : "";
  throw Error(Errc::system, fmt::format("{}: {}{}", what, std::strerror(errno), hint));
}

void set(const Socket& socket, int level, int option, int value) noexcept {
  setsockopt(socket.get(), level, option, &value, sizeof value);
}

// Before connecting or listening, because the window that is offered depends on it.
void set_buffers(const Socket& socket, const SocketOptions& options) noexcept {
  if (options.buffer_bytes <= 0) return;
  set(socket, SOL_SOCKET, SO_SNDBUF, options.buffer_bytes);
  set(socket, SOL_SOCKET, SO_RCVBUF, options.buffer_bytes);
}

Socket make_socket(const Address& address, const SocketOptions& options) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) system_error("socket");
  set_buffers(socket, options);
  return socket;
}

bool fill_address(Address& address, const std::string& text, std::uint16_t port) {
  auto* four = reinterpret_cast<sockaddr_in*>(&address.bytes);
  auto* six = reinterpret_cast<sockaddr_in6*>(&address.bytes);
  if (inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    address.length = sizeof *four;
    return true;
  }
  // A link-local address needs its interface: fe80::1%eth0.
  const auto percent = text.find('%');
  if (inet_pton(AF_INET6, text.substr(0, percent).c_str(), &six->sin6_addr) != 1) return false;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(port);
  if (percent != std::string::npos)
    six->sin6_scope_id = if_nametoindex(text.substr(percent + 1).c_str());
  address.length = sizeof *six;
  return true;
}

// Of an interface, its IPv4 address before its IPv6 address.
bool find_interface(Address& address, const std::string& name) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6})
    for (const auto* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family ||
          name != entry->ifa_name)
        continue;
      address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      std::memcpy(&address.bytes, entry->ifa_addr, address.length);
      return true;
    }
  return false;
}

bool is_any(const Address& address) {
  if (address.family() == AF_INET)
    return reinterpret_cast<const sockaddr_in&>(address.bytes).sin_addr.s_addr == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address.bytes).sin6_addr);
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool Address::is_loopback() const noexcept {
  if (family() == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(bytes).sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(bytes).sin6_addr);
}

std::string Address::host() const {
  char host[INET6_ADDRSTRLEN] = "?";
  if (family() == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(bytes);
    inet_ntop(AF_INET, &four.sin_addr, host, sizeof host);
    return host;
  }
  if (family() != AF_INET6) return "nowhere";
  const auto& six = reinterpret_cast<const sockaddr_in6&>(bytes);
  inet_ntop(AF_INET6, &six.sin6_addr, host, sizeof host);
  char interface[IF_NAMESIZE] = "";
  if (six.sin6_scope_id != 0) if_indextoname(six.sin6_scope_id, interface);
  return fmt::format("[{}{}{}]", host, *interface != 0 ? "%" : "", interface);
}

std::string Address::text() const {
  if (family() != AF_INET && family() != AF_INET6) return host();
  // The port lies at the same place in both.
  const auto port = reinterpret_cast<const sockaddr_in&>(bytes).sin_port;
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return fmt::format("{}:{}", host(), ntohs(port));
}

Address parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  Address address;
  std::uint16_t port = 0;
  bool fine = colon != std::string_view::npos;
  if (fine) {
    auto host = text.substr(0, colon);
    const auto digits = text.substr(colon + 1);
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    fine = status == std::errc{} && end == digits.data() + digits.size() && port != 0;
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
      host = host.substr(1, host.size() - 2);
    fine = fine && fill_address(address, std::string(host), port);
  }
  if (!fine)
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' is not an address such as 127.0.0.1:4711 or [::1]:4711", text));
  return address;
}

Address find_address(const std::string& address_or_interface) {
  Address address;
  if (!fill_address(address, address_or_interface, 0) &&
      !find_interface(address, address_or_interface))
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' is neither an address nor an interface of this machine (see "
                            "`ip addr`)",
                            address_or_interface));
  if (is_any(address))
    throw Error(Errc::invalid_argument,
                fmt::format("{} means every interface; name the one by which the other ranks "
                            "reach this machine",
                            address_or_interface));
  return address;
}

Socket listen_at(const Address& address, const SocketOptions& options) {
  Socket socket = make_socket(address, options);
  if (bind(socket.get(), address.get(), address.length) != 0)
    system_error(fmt::format("cannot listen at {}", address.text()));
  if (listen(socket.get(), SOMAXCONN) != 0) system_error("listen");
  return socket;
}

Socket connect_to(const Address& address, const SocketOptions& options) {
  Socket socket = make_socket(address, options);
  // Its outcome, whatever it is, is asked for later.
  (void)connect(socket.get(), address.get(), address.length);
  return socket;
}

int connect_error(const Socket& socket) noexcept {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return errno;
  return error;
}

void tune(const Socket& socket, const SocketOptions& options) noexcept {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  // A host that is gone does not say so; the kernel asks now and then.
  constexpr int kIdle = 5, kBetween = 5, kProbes = 3;  // seconds, seconds, probes
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdle);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, kBetween);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  if (!options.congestion.empty())
    setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, options.congestion.c_str(),
               static_cast<socklen_t>(options.congestion.size()));
}

Address local_address(const Socket& socket) noexcept {
  Address address;
  address.length = sizeof address.bytes;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.bytes), &address.length);
  return address;
}

Address remote_address(const Socket& socket) noexcept {
  Address address;
  address.length = sizeof address.bytes;
  getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address.bytes), &address.length);
  return address;
}

}  // namespace sinew::tcp
