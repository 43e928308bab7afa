// Network models as text: the file that `sinew calibrate` writes (docs/format-net.md), and one line
// for links that are known by two numbers.
#pragma once

#include <string>
#include <string_view>

#include "model/network.hpp"

namespace sinew {

/// Throws Error{invalid_argument} that names the file, the line, the key and what is allowed.
Network parse_network(std::string_view toml, std::string_view path);
/// `parse_network` reads what this writes, to the last digit.
std::string to_toml(const Network& network);

/// "alpha=5us,bw=25GB/s", optionally with exchange=, gamma=, copy= (rates) and eager= (bytes).
Network parse_network_line(std::string_view text);

}  // namespace sinew
