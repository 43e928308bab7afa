// How each peer's measuring program is started, with the settings that serve it best.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "measure/tournament.hpp"

namespace sinew::bench {

/// "openmpi", "openmpi:nocma", "openmpi:tcp", "mpich", "gloo".
std::vector<std::string> peer_names();

/// True when PATH leads to the program.
bool on_path(const std::string& program);

/// True when the peer's program is in `program_dir` (and its launcher, if it has one, on PATH).
bool peer_installed(std::string_view name, const std::string& program_dir);

/// Throws std::invalid_argument for a name that is not in peer_names().
ContenderSpec peer(std::string_view name, const std::string& program_dir);

}  // namespace sinew::bench
