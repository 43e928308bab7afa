#include "transport/rendezvous/socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <sinew/error.hpp>

namespace sinew {
namespace {

using namespace std::chrono_literals;

struct Endpoint {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
};

std::string text_of(const Endpoint& endpoint) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(endpoint.get(), endpoint.bytes, host.data(), host.size(), port.data(),
                    port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  const bool six = endpoint.storage.ss_family == AF_INET6;
  return fmt::format("{}{}{}:{}", six ? "[" : "", host.data(), six ? "]" : "", port.data());
}

bool is_loopback(const Endpoint& endpoint) {
  if (endpoint.storage.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &endpoint.storage, sizeof four);
    return ntohl(four.sin_addr.s_addr) >> 24 == 127;
  }
  sockaddr_in6 six{};
  std::memcpy(&six, &endpoint.storage, sizeof six);
  return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
}

Endpoint unix_endpoint(const std::string& name) {
  Endpoint endpoint;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() > sizeof(address.sun_path) - 1)
    throw Error(Errc::invalid_argument, fmt::format("rendezvous '{}' must have 1 to {} characters",
                                                    name, sizeof(address.sun_path) - 1));
  // A leading zero byte: the name lives in the kernel, not in a folder.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  std::memcpy(&endpoint.storage, &address, sizeof address);
  endpoint.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return endpoint;
}

/// All that the name stands for; empty when the resolver should be asked again later.
std::vector<Endpoint> resolve(const Address& address) {
  if (address.kind == Address::Kind::name) return {unix_endpoint(address.place)};
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int status =
      ::getaddrinfo(address.place.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (status == EAI_AGAIN) return {};
  if (status != 0)
    throw Error(Errc::invalid_argument,
                fmt::format("{}: the name '{}' does not resolve here ({}); give another name of "
                            "that host, or its number",
                            to_string(address), address.place,
                            status == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(status)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    Endpoint endpoint;
    std::memcpy(&endpoint.storage, info->ai_addr, info->ai_addrlen);
    endpoint.bytes = info->ai_addrlen;
    endpoints.push_back(endpoint);
  }
  return endpoints;
}

Socket make_socket(int family) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0)
    throw Error(Errc::system, fmt::format("cannot open a socket: {}", std::strerror(errno)));
  if (family != AF_UNIX) {
    const int yes = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  return socket;
}

// Debian and others let a host's own name stand for 127.0.1.1, where no other host can reach it.
// Whoever named the host wanted it to be reached.
void open_to_others(Endpoint& endpoint, const Address& address) {
  const bool number = address.place.find_first_not_of("0123456789.:") == std::string::npos;
  if (number || address.place.starts_with("localhost") || !is_loopback(endpoint)) return;
  if (endpoint.storage.ss_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, &endpoint.storage, sizeof four);
    four.sin_addr.s_addr = htonl(INADDR_ANY);
    std::memcpy(&endpoint.storage, &four, sizeof four);
  } else {
    sockaddr_in6 six{};
    std::memcpy(&six, &endpoint.storage, sizeof six);
    six.sin6_addr = in6addr_any;
    std::memcpy(&endpoint.storage, &six, sizeof six);
  }
}

[[noreturn]] void refuse_to_listen(const Address& address, const Endpoint& endpoint, int error) {
  const auto where = to_string(address);
  if (error == EADDRINUSE && address.kind == Address::Kind::name)
    throw Error(Errc::invalid_argument,
                fmt::format("rendezvous '{}' is taken: is another job using it?", where));
  if (error == EADDRINUSE)
    throw Error(Errc::invalid_argument,
                fmt::format("{}: port {} is in use on this host, by another job or program; choose "
                            "another port (`ss -ltnp` shows who has it)",
                            where, address.port));
  if (error == EADDRNOTAVAIL)
    throw Error(Errc::invalid_argument,
                fmt::format("{}: {} is no address of this host; the address must be that of the "
                            "host where rank 0 runs",
                            where, text_of(endpoint)));
  if (error == EACCES)
    throw Error(Errc::invalid_argument,
                fmt::format("{}: only root may listen at port {}; choose one above 1023", where,
                            address.port));
  throw Error(Errc::system, fmt::format("{}: cannot listen: {}", where, std::strerror(error)));
}

// A port of this host that nobody listens at may be given to the very socket that connects to it.
bool is_its_own_peer(const Socket& socket) {
  Endpoint mine, theirs;
  mine.bytes = theirs.bytes = sizeof mine.storage;
  return ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&mine.storage), &mine.bytes) ==
             0 &&
         ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&theirs.storage), &theirs.bytes) ==
             0 &&
         mine.storage.ss_family != AF_UNIX && mine.bytes == theirs.bytes &&
         std::memcmp(&mine.storage, &theirs.storage, mine.bytes) == 0;
}

/// 0, or the reason why this endpoint could not be connected now.
int try_connect(const Socket& socket, const Endpoint& endpoint, Deadline deadline) {
  if (::connect(socket.get(), endpoint.get(), endpoint.bytes) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    // One of several endpoints may be a black hole.
    if (!wait_for(socket, POLLOUT, std::min(deadline, Clock::now() + 5s))) return ETIMEDOUT;
  }
  int error = 0;
  socklen_t bytes = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error == 0 && is_its_own_peer(socket) ? ECONNREFUSED : error;
}

[[noreturn]] void give_up(const Address& address, int error, Clock::time_point begin) {
  const auto where = to_string(address), tried = seconds_since(begin);
  if (error == 0)
    throw Error(Errc::timeout, fmt::format("{}: the resolver did not answer for '{}' within {}; is "
                                           "the network up?",
                                           where, address.place, tried));
  if (error == ECONNREFUSED || error == ENOENT)
    throw Error(Errc::timeout,
                fmt::format("nobody listens at {} after {}: rank 0 has not started there, has "
                            "ended, or listens elsewhere",
                            where, tried));
  throw Error(Errc::timeout, fmt::format("{} cannot be reached ({}) after {}; check the address, "
                                         "routes and firewalls between the hosts",
                                         where, std::strerror(error), tried));
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Socket listen_at(const Address& address) {
  const auto endpoints = resolve(address);
  if (endpoints.empty()) give_up(address, 0, Clock::now());
  int error = 0;
  for (auto endpoint : endpoints) {
    if (address.kind == Address::Kind::tcp) open_to_others(endpoint, address);
    auto socket = make_socket(endpoint.storage.ss_family);
    const int yes = 1;  // a port whose last connections have just closed is free
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(socket.get(), endpoint.get(), endpoint.bytes) == 0 &&
        ::listen(socket.get(), SOMAXCONN) == 0)
      return socket;
    if (error == 0 || error == EADDRNOTAVAIL) error = errno;  // the most telling reason
  }
  refuse_to_listen(address, endpoints.front(), error);
}

Address bound_address(const Socket& listener, const Address& address) {
  auto bound = address;
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (address.kind != Address::Kind::tcp ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&storage), &bytes) != 0)
    return bound;
  // The port lies at the same place for both families.
  sockaddr_in four{};
  std::memcpy(&four, &storage, sizeof four);
  bound.port = ntohs(four.sin_port);
  return bound;
}

Socket connect_to(const Address& address, Deadline deadline) {
  const auto begin = Clock::now();
  auto pause = 1ms;
  int error = 0;
  while (true) {
    for (const auto& endpoint : resolve(address)) {
      auto socket = make_socket(endpoint.storage.ss_family);
      error = try_connect(socket, endpoint, deadline);
      if (error == 0) return socket;
    }
    if (Clock::now() + pause > deadline) give_up(address, error, begin);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, 100ms);
  }
}

bool wait_for(const Socket& socket, short events, Deadline deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{socket.get(), events, 0};
    const int ready =
        ::poll(&entry, 1, static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR)
      throw Error(Errc::system, fmt::format("poll: {}", std::strerror(errno)));
    if (left <= 0) return false;
  }
}

std::string peer_of(const Socket& socket) {
  Endpoint endpoint;
  endpoint.bytes = sizeof endpoint.storage;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&endpoint.storage),
                    &endpoint.bytes) != 0)
    return "a closed connection";
  if (endpoint.storage.ss_family != AF_UNIX) return text_of(endpoint);
  ucred peer{};
  socklen_t bytes = sizeof peer;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
  return fmt::format("process {}", peer.pid);
}

std::string seconds_since(Clock::time_point begin) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(Clock::now() - begin).count());
}

}  // namespace sinew
