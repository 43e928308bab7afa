#include "runtime/plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/text.hpp"

namespace sinew {
namespace {

namespace fs = std::filesystem;

// The shared library this code is in, or the program where it was linked statically.
fs::path own_file() {
  Dl_info info{};
  std::error_code ignored;
  if (dladdr(reinterpret_cast<const void*>(&load_plugin), &info) == 0 || info.dli_fname == nullptr)
    return fs::read_symlink("/proc/self/exe", ignored);
  // A program is named as it was called; a library by its path.
  const auto file = fs::canonical(info.dli_fname, ignored);
  return file.empty() ? fs::read_symlink("/proc/self/exe", ignored) : file;
}

Error unusable(const fs::path& file, std::string_view why) {
  return {Errc::unsupported, fmt::format("plugin {}: {}", file.string(), why)};
}

}  // namespace

std::vector<fs::path> plugin_folders(std::string_view sinew_plugins) {
  std::vector<fs::path> folders;
  for (const auto folder : split(sinew_plugins, ':'))
    if (!folder.empty()) folders.emplace_back(folder);
  const auto here = own_file().parent_path();
  folders.push_back(here / "sinew");                               // lib/libsinew.so
  folders.push_back(here.parent_path() / "lib" / "sinew");         // bin/program
  folders.push_back(here.parent_path() / SINEW_LIBDIR / "sinew");  // the same
  folders.push_back(fs::path(SINEW_PREFIX) / SINEW_LIBDIR / "sinew");
  return folders;
}

fs::path find_plugin(std::string_view file, const std::vector<fs::path>& folders) {
  std::error_code ignored;
  for (const auto& folder : folders)
    if (fs::exists(folder / file, ignored)) return folder / file;
  return {};
}

const TransportPlugin& load_plugin(const fs::path& file) {
  // Global, because an MPI's own plugins expect to find its symbols; never unloaded, because MPI
  // and what it registered for the end of the process cannot be.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (library == nullptr) throw unusable(file, dlerror());
  auto* entry = reinterpret_cast<PluginEntry*>(dlsym(library, kPluginEntry));
  if (entry == nullptr) throw unusable(file, fmt::format("has no {}", kPluginEntry));
  const TransportPlugin* plugin = entry();
  if (plugin == nullptr || plugin->version != kPluginVersion || plugin->build == nullptr ||
      std::string_view(plugin->build) != SINEW_PLUGIN_BUILD)
    throw unusable(
        file,
        fmt::format("is of Sinew {} (plugin version {}), but this is {} ({}); "
                    "install both from one build",
                    plugin == nullptr || plugin->build == nullptr ? "?" : plugin->build,
                    plugin == nullptr ? 0 : plugin->version, SINEW_PLUGIN_BUILD, kPluginVersion));
  return *plugin;
}

}  // namespace sinew
