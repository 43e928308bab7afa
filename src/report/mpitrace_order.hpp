// The order in which mpitrace lists routines.
#pragma once

#include <cstddef>
#include <string_view>

namespace sinew::report {

/// Smaller comes first; routines it does not know come after those it knows, files last.
std::size_t mpitrace_order(std::string_view routine) noexcept;

}  // namespace sinew::report
