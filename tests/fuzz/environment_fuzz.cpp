// Environments: lines of NAME=VALUE.
#include <string_view>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "require.hpp"
#include "runtime/environment.hpp"

using namespace sinew;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  Variables variables;
  for (const auto line : split({reinterpret_cast<const char*>(data), bytes}, '\n'))
    if (const auto equals = line.find('='); equals != std::string_view::npos)
      variables.emplace(line.substr(0, equals), line.substr(equals + 1));
  try {
    const auto environment = read_environment(variables);
    require(environment.size >= 1, "a group has a rank");
    require(environment.rank >= 0 && environment.rank < environment.size,
            "the rank is one of them");
    require(environment.local_size <= environment.size, "a host has no more ranks than there are");
    require(environment.local_rank < environment.size, "the local rank is one of them");
    require(environment.size == 1 || !environment.launcher.empty(), "somebody says so");
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument, "bad input is an invalid argument");
  }
  return 0;
}
