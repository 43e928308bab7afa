// Which address of this host other ranks should use.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/rendezvous/address.hpp"

namespace sinew {

struct InterfaceAddress {
  std::string interface;  // "eth0"
  std::string address;    // "10.1.2.3", "fd00::2"
  bool is_loopback = false;
  friend bool operator==(const InterfaceAddress&, const InterfaceAddress&) = default;
};

/// Those that are up and can be reached from elsewhere or from here: IPv4 before IPv6, no
/// link-local ones, which mean nothing without the interface.
std::vector<InterfaceAddress> list_interfaces();

/// What `wanted` (SINEW_IFACE) means among `found`: names and beginnings of names ("eth0", "eth"),
/// addresses and networks ("10.1.2.3", "10.1.0.0/16", "fd00::/8"), several in order of preference
/// ("ib0,eth"), or all but these ("^docker,lo"). "": the loopback, or with `others` on other hosts
/// the first interface that is not there for containers and virtual machines. Throws
/// Error{invalid_argument} that lists what was found.
std::string choose_address(std::span<const InterfaceAddress> found, std::string_view wanted,
                           bool others);

/// The address that this host shows to `there`, a tcp address; "" when there is no way. Sends
/// nothing.
std::string address_toward(const Address& there);

}  // namespace sinew
