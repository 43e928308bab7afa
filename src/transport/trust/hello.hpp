// Who an end of a connection is, and when two ends belong together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace sinew {

enum class HandshakeRole : std::uint8_t { connects, accepts };

/// Who an end is. Proven by the token together with both ends' nonces, so that it cannot be
/// replayed, nor brought from another job or epoch.
struct Hello {
  enum class Purpose : std::uint8_t { store, control, data };
  Purpose purpose{};
  std::uint8_t stream = 0;  // of several data connections between two ranks
  bool tls = false;         // goes on by TLS when both have proven themselves
  std::uint32_t epoch = 0;  // membership that the end belongs to
  std::int32_t rank = -1;   // -1: not a rank (a launcher)
  std::int32_t size = 0;    // 0: not known
  std::uint64_t group =
      0;  // hash of the communicator's name: subsets have connections of their own
  friend bool operator==(const Hello&, const Hello&) = default;
};

std::string_view name(Hello::Purpose purpose) noexcept;

/// Why `mine` cannot speak with `theirs`, or "": another purpose, stream, group, epoch or world
/// size, a rank that does not exist, or our own.
std::string misfit(const Hello& mine, const Hello& theirs);

/// Why the other end, which has proven to be this, is not welcome; or "". An accepting end tells it
/// the reason. Without a judge, `misfit` decides.
using HandshakeJudge = std::function<std::string(const Hello& theirs)>;

}  // namespace sinew
