// The page that draw_html() fills, out of web/schedule.html.
#pragma once

#include <string_view>

namespace sinew {

extern const std::string_view kSchedulePage;

}  // namespace sinew
