// Places of one's own: a network, and folders for what programs leave behind, out of reach of
// everybody else.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace sinew::test {

/// This process goes on in name spaces of its own (CLONE_NEWNS, ...), as their root. False: the
/// system allows no such thing.
bool leave(int spaces);

/// Runs `body` in a child process with a network of its own, loopback up; gives back what it says
/// ("": all well). Where the system allows no such thing: "skip: " and why.
std::string in_own_network(const std::function<std::string()>& body);

/// The same, also with a /dev/shm and (unless the programs under test lie there) a /tmp of its own,
/// both empty, so that whatever is in them afterwards was left behind by `body`.
std::string in_own_place(const std::function<std::string()>& body);

/// What is there that nobody should have left: processes whose parent this one is, sockets of this
/// network (but those that the kernel keeps for a while after the end), files in /dev/shm and /tmp.
/// "": nothing. Only inside in_own_place().
std::string left_behind(std::chrono::milliseconds patience = std::chrono::seconds(5));

}  // namespace sinew::test
