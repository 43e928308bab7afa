// Addresses as people write them, and mistype them.
#include "transport/rendezvous/address.hpp"

#include <gtest/gtest.h>

#include <sinew/error.hpp>

namespace sinew {
namespace {

using Kind = Address::Kind;

TEST(Address, is_read_as_it_is_written) {
  const std::pair<std::string, Address> cases[] = {
      {"tcp://node7.cluster:29501", {Kind::tcp, "node7.cluster", 29501}},
      {"tcp://10.1.2.3:1", {Kind::tcp, "10.1.2.3", 1}},
      {"tcp://[::1]:65535", {Kind::tcp, "::1", 65535}},
      {"tcp://[fe80::1%eth0]:80", {Kind::tcp, "fe80::1%eth0", 80}},
      {"file:///scratch/job-7", {Kind::file, "/scratch/job-7", 0}},
      {"sinew-123-abc", {Kind::name, "sinew-123-abc", 0}},
  };
  for (const auto& [text, address] : cases) {
    EXPECT_EQ(Address::parse(text), address) << text;
    EXPECT_EQ(to_string(address), text);
  }
}

TEST(Address, is_refused_with_what_is_wrong_and_how_to_write_it) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "1 to 80 characters"},
      {std::string(81, 'x'), "1 to 80 characters"},
      {"tcp://", "the port is missing"},
      {"tcp://host", "the port is missing"},
      {"tcp://host:", "'' is not a port"},
      {"tcp://host:0", "'0' is not a port"},
      {"tcp://host:65536", "'65536' is not a port"},
      {"tcp://host:12x", "'12x' is not a port"},
      {"tcp://host:-1", "'-1' is not a port"},
      {"tcp://:12", "'' is not a host"},
      {"tcp://a/b:12", "'a/b' is not a host"},
      {"tcp://" + std::string(256, 'x') + ":1", "is not a host"},
      {"tcp://[::1]", "the port is missing"},
      {"tcp://[::1:12", "']' is missing"},
      {"tcp://::1:12", "an IPv6 address stands in brackets"},
      {"tcp://[]:12", "'' is not a host"},
      {"file://tmp/x", "three slashes"},
      {"http://host:80", "'http' is not known"},
      {"tcp://host name:1", "blanks"},
      {"name\n", "blanks"},
  };
  for (const auto& [text, reason] : cases) {
    try {
      (void)Address::parse(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("write tcp://host:port"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace sinew
