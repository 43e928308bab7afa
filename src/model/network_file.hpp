// Network models as text: the file that `sinew calibrate` writes (docs/format-net.md), and one line
// for links that are known by two numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/network.hpp"

namespace sinew {

/// Throws Error{invalid_argument} that names the file, the line, the key and what is allowed.
/// `settings` change single values first: "link.nic.gbytes_per_s=12.5", "level.rack.size=8".
Network parse_network(std::string_view toml, std::string_view path,
                      std::span<const std::string> settings = {});
/// `parse_network` reads what this writes, to the last digit.
std::string to_toml(const Network& network);

/// "alpha=5us,bw=25GB/s", optionally with exchange=, gamma=, copy= (rates) and eager= (bytes).
Network parse_network_line(std::string_view text);

/// "5 us and 25 GB/s a message", or the name of a model file and where it came from.
std::string describe(const Network& network);

}  // namespace sinew
