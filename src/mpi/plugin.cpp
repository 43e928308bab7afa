// The entry of the plugin: nothing but this leaves the library.
#include "runtime/plugin.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "mpi/mpi_transport.hpp"

namespace sinew::mpi {
namespace {

Transport* join(const PluginJoin& join, Errc& code, char* why, std::size_t why_bytes) {
  const auto explain = [&](std::string_view text) {
    const auto length = std::min(text.size(), why_bytes - 1);
    std::memcpy(why, text.data(), length);
    why[length] = '\0';
  };
  try {
    return MpiTransport::join(join).release();
  } catch (const Error& error) {
    code = error.code();
    explain(error.what());
  } catch (const std::exception& error) {
    code = Errc::system;
    explain(error.what());
  }
  return nullptr;
}

}  // namespace
}  // namespace sinew::mpi

extern "C" __attribute__((visibility("default"))) const sinew::TransportPlugin*
sinew_transport_plugin() {
  static constexpr sinew::TransportPlugin kPlugin{sinew::kPluginVersion, SINEW_PLUGIN_BUILD,
                                                  sinew::mpi::join};
  return &kPlugin;
}
