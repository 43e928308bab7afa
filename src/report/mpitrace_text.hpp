// A rank's profile in the text layout of mpitrace, so that scripts that read its files keep
// working.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trace/profile.hpp"

namespace sinew::report {

/// `older` is that of the versions before 2019, which some centres still install.
enum class MpitraceLayout { today, older };

/// The ranks with the least, the median and the most time in communication.
struct CommunicationRanks {
  int least = 0, median = 0, most = 0;
};
CommunicationRanks communication_ranks(std::span<const trace::RankProfile> ranks);

/// Those mpitrace writes a file of: rank 0 and the three above, each once, ascending.
std::vector<int> ranks_with_files(const CommunicationRanks& chosen);

/// Which row of the size distribution: 0 for empty messages, 1 up to 4 bytes, then powers of two.
unsigned mpitrace_bin(std::uint64_t bytes) noexcept;

/// The file of `rank`. That of rank 0 ends with a summary of `all`, which may hold sums only.
std::string mpitrace_text(const trace::Profile& all, const trace::RankProfile& rank,
                          const CommunicationRanks& chosen,
                          MpitraceLayout layout = MpitraceLayout::today);

/// "mpi_profile.<job>.<rank>".
std::string mpitrace_file_name(const std::string& job, int rank);

}  // namespace sinew::report
