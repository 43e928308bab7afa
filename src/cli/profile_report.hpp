// A profile for people and for programs.
#pragma once

#include <string>

#include "trace/profile.hpp"

namespace sinew {

/// Tables of at most 80 columns; `rows` of the longest by size.
std::string profile_text(const trace::Profile& profile, std::size_t rows);
std::string profile_json(const trace::Profile& profile);

}  // namespace sinew
