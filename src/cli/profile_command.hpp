// How the preload reaches the ranks of a command and nothing else.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sinew {

enum class Launcher { none, openmpi, hydra, slurm };

/// By its name and, for names that several MPIs share, by what its --version says.
Launcher launcher_of(const std::string& program, const std::string& version);

/// The command with the variables added for its ranks; the launcher itself does not get them.
std::vector<std::string> with_variables(
    const std::vector<std::string>& command, Launcher launcher,
    const std::vector<std::pair<std::string, std::string>>& variables);

/// Throw Error{invalid_argument} that shows the right form.
void check_labels(const std::string& text);
void check_rank_list(const std::string& text);

}  // namespace sinew
