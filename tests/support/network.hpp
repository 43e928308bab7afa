// A network of one's own: loopback and whatever a test makes, out of reach of everybody else.
#pragma once

#include <functional>
#include <string>

namespace sinew::test {

/// Runs `body` in a child process with a network of its own, loopback up; gives back what it says
/// ("": all well). Where the system allows no such thing: "skip: " and why.
std::string in_own_network(const std::function<std::string()>& body);

}  // namespace sinew::test
