// The longest chain of a collective for people: in words, as a drawing in text, and as SVG.
#pragma once

#include <span>
#include <string>

#include "model/critical_path.hpp"

namespace sinew::report {

/// A step a line, and who waited longest for whom. Lines of at most 80 columns.
std::string explain_in_words(const CriticalPath& path);

/// Ranks down, time across: what each did when, with the chain in capital letters.
std::string explain_as_text(const CriticalPath& path, std::span<const Activity> activities,
                            int columns);

std::string explain_as_svg(const CriticalPath& path, std::span<const Activity> activities,
                           const std::string& title);

/// The ranks that a drawing shows: all of a few, else those on the chain, at most `most`.
std::vector<int> ranks_shown(const CriticalPath& path, std::span<const Activity> activities,
                             std::size_t most);

}  // namespace sinew::report
