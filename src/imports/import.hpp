// Profiles that other tools wrote, in the model of our own.
#pragma once

#include <optional>
#include <span>

#include "imports/lines.hpp"
#include "trace/profile.hpp"

namespace sinew::imports {

enum class Format { mpitrace, mpip, horovod, kineto };

std::string_view name(Format format) noexcept;

/// By what is in it, never by its name.
std::optional<Format> format_of(std::string_view text);

/// Files of one run: one a rank, or one for all. Lines that make no sense are left out and named in
/// `warnings`. Throws Error{invalid_argument} that names file and line when nothing is left, when
/// the format is unknown, or when the files are not of one run.
trace::Profile import_profile(std::span<const Source> sources);

}  // namespace sinew::imports
