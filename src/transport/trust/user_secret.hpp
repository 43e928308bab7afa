// A secret that all processes of one user on one host share: a file that only the user can read.
// With it, ranks that know the same name of their job have a token without telling each other.
#pragma once

#include <string>
#include <string_view>

#include "transport/trust/token.hpp"

namespace sinew {

/// Reads the secret, or makes it. It lies in `runtime_folder`/sinew if that folder is there
/// (XDG_RUNTIME_DIR), else in /tmp/sinew-UID. Throws Error{system} when the folder or the file is
/// not this user's alone.
Token user_secret(const std::string& runtime_folder);

/// Another secret that follows from `secret`, and cannot be had without it.
Token derive(const Token& secret, std::string_view purpose);

}  // namespace sinew
