// Text in lines that fit a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sinew {

/// `text` broken between words into lines of at most `columns`; breaks it has stay. All lines but
/// the first begin with `indent` spaces, which count; the first has `before` columns less.
std::string wrapped(std::string_view text, std::size_t columns = 80, std::size_t indent = 0,
                    std::size_t before = 0);

}  // namespace sinew
