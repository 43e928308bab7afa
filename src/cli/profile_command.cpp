#include "cli/profile_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

constexpr std::array<std::string_view, 4> kShared{"mpirun", "mpiexec", "orterun", "prterun"};

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

void check_labels(const std::string& text) {
  if (text.empty()) return;
  for (const auto& part : split(text, ',')) {
    const auto colon = part.find(':');
    if (!part.starts_with("tag=") || colon == std::string_view::npos ||
        !is_number(part.substr(4, colon - 4)) || colon + 1 == part.size())
      throw Error(Errc::invalid_argument,
                  fmt::format("--label {}: '{}' is not of the form tag=1:NAME", text, part));
  }
}

void check_rank_list(const std::string& text) {
  if (text.empty()) return;
  for (const auto& part : split(text, ',')) {
    const auto dash = part.find('-');
    const bool range = dash != std::string_view::npos;
    if (!is_number(part.substr(0, dash)) || (range && !is_number(part.substr(dash + 1))))
      throw Error(
          Errc::invalid_argument,
          fmt::format("--ranks {}: '{}' is neither a rank (4) nor a range (4-7)", text, part));
  }
}

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
