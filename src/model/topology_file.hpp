// The parts of a network file about who is connected how, and about what is not always the same.
#pragma once

#include <string>

#include "model/network.hpp"
#include "model/toml_section.hpp"

namespace sinew {

/// [link.NAME] in `link`, and [[level]], [[rank]], [[path]] and `placement` in `top`.
Topology read_topology(Section& top, Section& link);
/// [cores], [noise] and [stragglers].
void read_disturbances(Section& top, Network& network);

std::string links_text(const Topology& topology);
std::string topology_text(const Topology& topology);
std::string disturbances_text(const Network& network);

/// `key = [ ... ]`, nothing for a curve that is free.
std::string curve_text(std::string_view key, const Curve& curve);
/// A text as TOML quotes it.
std::string quoted(std::string_view text);

}  // namespace sinew
