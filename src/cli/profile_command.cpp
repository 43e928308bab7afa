#include "cli/profile_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sinew {
namespace {

constexpr std::array<std::string_view, 4> kShared{"mpirun", "mpiexec", "orterun", "prterun"};

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Launcher launcher_of(const std::string& program, const std::string& version) {
  const auto name = base_name(program);
  if (name == "srun") return Launcher::slurm;
  if (name.ends_with(".openmpi")) return Launcher::openmpi;
  if (name.ends_with(".mpich") || name.ends_with(".hydra")) return Launcher::hydra;
  if (std::find(kShared.begin(), kShared.end(), name) == kShared.end()) return Launcher::none;
  const auto says = [&](std::string_view word) { return version.find(word) != std::string::npos; };
  if (says("Open MPI") || says("OpenRTE") || says("PRRTE")) return Launcher::openmpi;
  return says("HYDRA") || says("Intel(R) MPI") ? Launcher::hydra : Launcher::none;
}

std::vector<std::string> with_variables(
    const std::vector<std::string>& command, Launcher launcher,
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> result;
  if (launcher == Launcher::none) {
    result.emplace_back("env");
    for (const auto& [name, value] : variables) result.push_back(fmt::format("{}={}", name, value));
    result.insert(result.end(), command.begin(), command.end());
    return result;
  }
  result.push_back(command.front());
  std::string exported = "--export=ALL";
  for (const auto& [name, value] : variables) {
    if (launcher == Launcher::openmpi) {
      result.emplace_back("-x");
      result.push_back(fmt::format("{}={}", name, value));
    } else if (launcher == Launcher::hydra) {
      result.insert(result.end(), {"-genv", name, value});
    } else {
      exported += fmt::format(",{}={}", name, value);
    }
  }
  if (launcher == Launcher::slurm) result.push_back(exported);
  result.insert(result.end(), command.begin() + 1, command.end());
  return result;
}

}  // namespace sinew
