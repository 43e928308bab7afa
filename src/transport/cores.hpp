// How many processors there really are for us, which decides how waiting is done.
#pragma once

namespace sinew {

/// `cores`, or fewer where a cgroup quota allows less; at least 1.
int within_quota(int cores);
/// Processors this process may run on: affinity and quota.
int allowed_cores();

}  // namespace sinew
