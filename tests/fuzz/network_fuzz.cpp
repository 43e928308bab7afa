// Network models as users write them: files and lines.
#include <string_view>

#include <sinew/error.hpp>
#include "model/network_file.hpp"
#include "require.hpp"

using namespace sinew;

template <class Function>
static void attempt(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument, "bad input is an invalid argument");
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  attempt([&] {
    const auto network = parse_network(text, "file");
    parse_network(to_toml(network), "what we wrote ourselves");
    require(network.one_way.at(1e3).alpha >= 0, "times are not negative");
  });
  attempt([&] { require(!parse_network_line(text).one_way.is_free(), "a link costs"); });
  return 0;
}
