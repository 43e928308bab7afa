// Network models on the command line.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/network.hpp"

namespace sinew {

/// A model file, or a line such as alpha=5us,bw=25GB/s. Throws Error that says what is wrong where.
/// `settings` change values of the file.
Network load_network(const std::string& text, std::span<const std::string> settings = {});

/// "6,12" and "8..1024", where a range doubles and always has its end. Throws
/// Error{invalid_argument}.
std::vector<int> parse_doubling_ranks(const std::string& text);

}  // namespace sinew
