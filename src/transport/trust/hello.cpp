#include "transport/trust/hello.hpp"

#include <fmt/format.h>

namespace sinew {

std::string_view name(Hello::Purpose purpose) noexcept {
  switch (purpose) {
    case Hello::Purpose::store:
      return "store";
    case Hello::Purpose::control:
      return "control";
    case Hello::Purpose::data:
      return "data";
  }
  return "unknown";
}

std::string misfit(const Hello& mine, const Hello& theirs) {
  if (theirs.purpose != mine.purpose)
    return fmt::format("is there for {}, not for {}", name(theirs.purpose), name(mine.purpose));
  if (theirs.tls != mine.tls)
    return fmt::format("{}: give --tls (SINEW_TLS=1) to all ranks, or to none",
                       theirs.tls ? "speaks TLS, and we do not" : "does not speak TLS, and we do");
  if (theirs.size != mine.size && theirs.size != 0 && mine.size != 0)
    return fmt::format("counts {} ranks, not {}", theirs.size, mine.size);
  if (theirs.epoch != mine.epoch)
    return fmt::format("belongs to epoch {}, not to {}", theirs.epoch, mine.epoch);
  if (theirs.group != mine.group || theirs.stream != mine.stream)
    return "belongs to another communicator of this job";
  if (theirs.rank < -1 || (mine.size > 0 && theirs.rank >= mine.size))
    return fmt::format("claims to be rank {}, which does not exist", theirs.rank);
  if (theirs.rank >= 0 && theirs.rank == mine.rank)
    return fmt::format("claims to be rank {}, which is taken", theirs.rank);
  return "";
}

}  // namespace sinew
