// Transports that are separate libraries, so that neither this library nor its users link what they
// need: found, loaded and checked at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sinew/transport.hpp>

namespace sinew {

/// Changes with the two structs below. Whether Transport and what its functions take are the same
/// is told by `build`: cmake/plugin_build.cmake.
inline constexpr std::uint32_t kPluginVersion = 1;

/// What a plugin is told when it shall join the group it was started in.
struct PluginJoin {
  Deadline deadline{};
  std::string (*describe)(const OpDescriptor& descriptor) = nullptr;  // for error texts
};

/// What `sinew_transport_plugin` points to. The first two fields keep their place in all versions.
struct TransportPlugin {
  std::uint32_t version = kPluginVersion;
  const char* build = nullptr;  // of Sinew: a plugin belongs to the library it was built with
  /// Null on failure; `why` then holds the reason and `code` its kind. Throws nothing.
  Transport* (*join)(const PluginJoin& join, Errc& code, char* why,
                     std::size_t why_bytes) = nullptr;
};

extern "C" using PluginEntry = const TransportPlugin * ();
inline constexpr const char* kPluginEntry = "sinew_transport_plugin";

/// Where plugins are looked for: the folders in SINEW_PLUGINS (divided by colons), then lib/sinew
/// beside this library or this program, then where the library was configured to be installed.
std::vector<std::filesystem::path> plugin_folders(std::string_view sinew_plugins);
/// The file of a plugin, or an empty path.
std::filesystem::path find_plugin(std::string_view file,
                                  const std::vector<std::filesystem::path>& folders);

/// Loads a plugin, once, and checks that it is of this build. Throws Error{unsupported} that says
/// what to do.
const TransportPlugin& load_plugin(const std::filesystem::path& file);

}  // namespace sinew
