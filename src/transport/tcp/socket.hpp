// Sockets and addresses: owning a descriptor, listening, connecting, without ever blocking.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace sinew::tcp {

/// Owns a descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) noexcept : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] bool valid() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

/// An IPv4 or IPv6 address with a port.
struct Address {
  sockaddr_storage bytes{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&bytes);
  }
  [[nodiscard]] int family() const noexcept { return bytes.ss_family; }
  [[nodiscard]] bool is_loopback() const noexcept;
  /// Without the port: "127.0.0.1", "[::1]".
  [[nodiscard]] std::string host() const;
  /// "127.0.0.1:4711", "[::1]:4711".
  [[nodiscard]] std::string text() const;
};

/// Reads what Address::text() writes. Throws Error{invalid_argument}.
Address parse_address(std::string_view text);
/// Where to listen, by address ("127.0.0.1", "::1") or interface ("eth0"), with any free port.
/// Throws Error{invalid_argument} for what others could not connect to (0.0.0.0, a typing error).
Address find_address(const std::string& address_or_interface);

/// Options of a connection's socket.
struct SocketOptions {
  int buffer_bytes = 0;    // asked of the kernel for each direction; 0: let it find out
  std::string congestion;  // its congestion control by name; "": as the system is set up
};

/// Throws Error{system}.
Socket listen_at(const Address& address, const SocketOptions& options);
/// Begins to connect; writable when done, then ask connect_error(). Throws Error{system} when not
/// even a socket is to be had.
Socket connect_to(const Address& address, const SocketOptions& options);
/// 0, or the errno with which connecting failed.
int connect_error(const Socket& socket) noexcept;
/// What every connection gets once it is there: no delay, keepalive.
void tune(const Socket& socket, const SocketOptions& options) noexcept;

Address local_address(const Socket& socket) noexcept;
Address remote_address(const Socket& socket) noexcept;

}  // namespace sinew::tcp
