// What the ranks of an MPI job check among themselves. Each check is run by all ranks of one job;
// what is wrong becomes lines of text.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <sinew/communicator.hpp>

namespace sinew::test {

using Lines = std::vector<std::string>;

/// All ranks of the job, over MPI. Each call makes another communicator.
inline Communicator join(std::chrono::nanoseconds timeout = std::chrono::seconds(60)) {
  return connect({.timeout = timeout, .transport = "mpi"});
}

/// What the action threw, as "<code>: <text>", or "no error".
std::string error_of(const std::function<void()>& action);

/// Calls of operator new in this process; rank_program.cpp counts them.
std::size_t allocations_so_far() noexcept;

// rank_checks.cpp: what works.
Lines data();
Lines large();
Lines hosts();
Lines messages();
Lines groups();
Lines threads();
Lines many();
Lines allocations();

// failure_checks.cpp: what must fail, how, and that nothing else does.
Lines mismatched();
Lines lengths();
Lines late();
Lines left();
Lines alone();
Lines absent();
Lines unread();
Lines dies();

}  // namespace sinew::test
