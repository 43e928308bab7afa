// How long the longest chain of messages is in which each waits for the one before.
#pragma once

#include <span>

#include <sinew/schedule.hpp>

namespace sinew {

/// Over all ranks' schedules of one collective, by rank. 0: nobody waits for a message.
int message_depth(std::span<const Schedule> ranks);

}  // namespace sinew
