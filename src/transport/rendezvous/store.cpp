#include "transport/rendezvous/store.hpp"

#include <fmt/format.h>

#include <sinew/error.hpp>
#include "transport/rendezvous/socket.hpp"

namespace sinew {
namespace {

// Values may be anything; an error shows the beginning of what prints.
std::string excerpt(std::string_view value) {
  constexpr std::size_t kMost = 60;
  std::string text;
  for (const char c : value.substr(0, kMost)) text += c >= ' ' && c <= '~' ? c : '?';
  return value.size() > kMost ? text + "..." : text;
}

}  // namespace

void check_entry(std::string_view key, std::string_view value) {
  if (key.empty() || key.size() > kLongestKey)
    throw Error(Errc::invalid_argument, fmt::format("a key has 1 to {} bytes, '{}' has {}",
                                                    kLongestKey, excerpt(key), key.size()));
  if (value.size() > kLongestValue)
    throw Error(Errc::invalid_argument, fmt::format("the value of '{}' has {} bytes, more than {}",
                                                    excerpt(key), value.size(), kLongestValue));
}

void throw_taken(std::string_view key, std::string_view store, std::string_view has,
                 std::string_view wanted) {
  throw Error(Errc::invalid_argument,
              fmt::format("'{}' in {} is '{}' already and cannot become '{}': two ranks with one "
                          "number, or another job in the same place",
                          excerpt(key), store, excerpt(has), excerpt(wanted)));
}

void throw_absent(std::string_view key, std::string_view store, Clock::time_point begin,
                  std::string_view turned_away) {
  throw Error(
      Errc::timeout,
      fmt::format("nobody has set '{}' in {} within {}: the rank that would has not started, "
                  "or has ended{}{}",
                  excerpt(key), store, seconds_since(begin),
                  turned_away.empty() ? "" : "; turned away: ", turned_away));
}

}  // namespace sinew
