// Choosing an address: by rule among given ones, then with the interfaces of a network of our own.
#include "transport/tcp/interface.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include <sinew/error.hpp>
#include "support/network.hpp"
#include "transport/rendezvous/socket.hpp"

namespace sinew {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::vector<InterfaceAddress> kHost{
    {"lo", "127.0.0.1", true},    {"docker0", "172.17.0.1", false}, {"eth10", "10.2.0.5", false},
    {"eth1", "10.1.0.5", false},  {"ib0", "192.168.7.5", false},    {"lo", "::1", true},
    {"eth1", "fd00:1::5", false},
};

TEST(Interface, is_chosen_by_name_beginning_network_and_exclusion) {
  struct Case {
    std::string wanted;
    bool others;
    std::string address;
  };
  for (const auto& [wanted, others, address] : {
           Case{"", false, "127.0.0.1"},
           Case{"", true, "10.2.0.5"},  // docker0 is for containers
           Case{"eth1", true, "10.1.0.5"},
           Case{"eth10", true, "10.2.0.5"},
           Case{"eth", true, "10.2.0.5"},
           Case{"docker0", true, "172.17.0.1"},
           Case{"lo", true, "127.0.0.1"},
           Case{"10.1.0.0/16", true, "10.1.0.5"},
           Case{"10.0.0.0/8", true, "10.2.0.5"},
           Case{"10.1.0.5", true, "10.1.0.5"},
           Case{"0.0.0.0/0", false, "127.0.0.1"},
           Case{"fd00::/8", true, "fd00:1::5"},
           Case{"fd00:1::5/128", true, "fd00:1::5"},
           Case{"ib9,ib,eth", true, "192.168.7.5"},
           Case{"^docker,eth", true, "192.168.7.5"},
           Case{"^docker,10.2.0.0/15", true, "10.1.0.5"},
           Case{"^eth,docker,ib,lo", true, ""},
           Case{"eth9", true, ""},
           Case{"10.9.0.0/16", true, ""},
           Case{"^lo", false, ""},
       }) {
    try {
      EXPECT_EQ(choose_address(kHost, wanted, others), address) << wanted;
    } catch (const Error& error) {
      EXPECT_EQ(address, "") << error.what();
      EXPECT_TRUE(has(error.what(), wanted) && has(error.what(), "eth1 (10.1.0.5)"))
          << error.what();
    }
  }
}

TEST(Interface, a_misspelt_network_and_an_empty_host_are_told) {
  for (const std::string wanted : {"10.1.0.0/33", "10.1.0.0/x", "fd00::/129", "10.1.0.0/"}) {
    try {
      (void)choose_address(kHost, wanted, true);
      FAIL() << wanted;
    } catch (const Error& error) {
      EXPECT_TRUE(has(error.what(), "is not a network")) << error.what();
    }
  }
  try {
    (void)choose_address({}, "", true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(has(error.what(), "found: none")) << error.what();
  }
}

TEST(Interface, real_interfaces_are_found_and_can_be_listened_at) {
  const auto said = test::in_own_network([]() -> std::string {
    if (std::system(
            "ip link add left type veth peer name right && ip addr add 10.77.1.1/24 dev left"
            " && ip -6 addr add fd77::1/64 dev left nodad && ip addr add 10.78.1.1/24 dev "
            "right && ip link set left up") != 0)
      return "skip: no ip command, or no veth";
    const auto found = list_interfaces();
    const auto is_there = [&](const InterfaceAddress& one) {
      return std::find(found.begin(), found.end(), one) != found.end();
    };
    if (!is_there({"lo", "127.0.0.1", true})) return "lo is missing";
    if (!is_there({"left", "10.77.1.1", false})) return "left is missing";
    if (!is_there({"left", "fd77::1", false})) return "left's IPv6 is missing";
    for (const auto& one : found)
      if (one.interface == "right") return "right is down";
    if (choose_address(found, "", true) != "10.77.1.1") return "default for others";
    for (const std::string wanted : {"left", "le", "10.77.0.0/16", "fd77::/16", "^lo"}) {
      const auto address = choose_address(found, wanted, true);
      const auto listener = listen_at({Address::Kind::tcp, address, 0});
      if (bound_address(listener, {Address::Kind::tcp, address, 0}).port == 0) return wanted;
    }
    const auto toward = address_toward({Address::Kind::tcp, "10.77.1.9", 4000});
    if (toward != "10.77.1.1") return "toward 10.77.1.9: " + toward;
    if (address_toward({Address::Kind::tcp, "127.0.0.1", 4000}) != "127.0.0.1") return "to itself";
    if (!address_toward({Address::Kind::tcp, "10.99.0.1", 4000}).empty()) return "no route, yet";
    return "";
  });
  if (said.starts_with("skip")) GTEST_SKIP() << said;
  EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace sinew
