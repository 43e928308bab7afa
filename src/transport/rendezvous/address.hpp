// Where a job's ranks meet, as people write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sinew {

struct Address {
  enum class Kind : std::uint8_t {
    name,  // of an abstract Unix socket: ranks of one host
    tcp,   // tcp://host:port, tcp://[::1]:port
    file,  // file:///folder on a file system that all ranks see
  };
  Kind kind = Kind::name;
  std::string place;       // the name, the host or the folder
  std::uint16_t port = 0;  // of tcp; 0: whichever is free

  /// Throws Error{invalid_argument} that shows how an address is written.
  static Address parse(std::string_view text);
  friend bool operator==(const Address&, const Address&) = default;
};

std::string to_string(const Address& address);

}  // namespace sinew
