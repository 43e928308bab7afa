// Bytes that a rank must put on the wire for a call, by the least that any algorithm needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <sinew/types.hpp>
#include "report/quantity.hpp"

namespace sinew::report {

/// What a routine is, whoever made it: "MPI_Iallreduce", "allreduce" and "MPI_ALLREDUCE" are one.
std::optional<Collective> collective_of(std::string_view routine);

bool is_receive(std::string_view routine);
/// Its time is that of posting a request, not of moving anything.
bool only_posts(std::string_view routine);

/// By a rank, on average: a ring's bytes for the collectives in which all ranks do alike. `bytes`
/// as the caller gave them, `sent` as recorded (0: not told).
Modelled wire_bytes(std::string_view routine, std::uint64_t bytes, std::uint64_t sent, int ranks);

}  // namespace sinew::report
