// A page in the user's browser.
#pragma once

#include <string>

namespace sinew {

/// By $BROWSER or xdg-open. Returns the status to leave with; what is missing is named on stderr,
/// with the path, so that it can be opened by hand.
int open_page(const std::string& path);

}  // namespace sinew
