// Addresses, interfaces, tokens and host lists as users write them.
#include <string_view>

#include <sinew/error.hpp>
#include "require.hpp"
#include "runtime/environment.hpp"
#include "transport/rendezvous/address.hpp"
#include "transport/tcp/interface.hpp"
#include "transport/trust/token.hpp"

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
    const auto address = Address::parse(text);
    require(Address::parse(to_string(address)) == address, "an address survives being written");
  });
  attempt([&] { require(Token::parse(text).hex().size() == 64, "a token has 64 digits"); });
  const InterfaceAddress found[] = {
      {"lo", "127.0.0.1", true}, {"eth0", "10.1.2.3", false}, {"eth0", "fd00::3", false}};
  for (const bool others : {false, true})
    attempt(
        [&] { require(!choose_address(found, text, others).empty(), "a choice is an address"); });
  require(first_host(text).size() <= text.size(), "the first host is a part of the list");
  return 0;
}
