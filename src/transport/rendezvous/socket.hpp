// Stream sockets at an address: opened without blocking, refused with a story.
#pragma once

#include <string>
#include <utility>

#include <sinew/transport.hpp>
#include "transport/rendezvous/address.hpp"

namespace sinew {

/// Owns a descriptor.
class Socket {
 public:
  explicit Socket(int descriptor = -1) noexcept : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();
  [[nodiscard]] int get() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

/// Listens at a name or a tcp address; does not block. Throws Error that says what is in the way:
/// the port is in use, the host is another machine, the name does not resolve.
Socket listen_at(const Address& address);
/// `address` with the port that the system chose for `listener`.
Address bound_address(const Socket& listener, const Address& address);

/// Connected and non-blocking. Who listens may come later than we do, so this tries until the
/// deadline, then throws Error{timeout} with the last reason. A name that does not exist fails at
/// once.
Socket connect_to(const Address& address, Deadline deadline);

/// Waits for POLLIN or POLLOUT; false at the deadline.
bool wait_for(const Socket& socket, short events, Deadline deadline);

/// "10.0.0.7:41002", "[::1]:5", or the process at the other end of a Unix socket.
std::string peer_of(const Socket& socket);

/// "1.2 s", for texts of errors.
std::string seconds_since(Clock::time_point begin);

}  // namespace sinew
