// Where ranks leave words for each other before they are connected.
#pragma once

#include <string>
#include <string_view>

#include <sinew/transport.hpp>

namespace sinew {

inline constexpr std::size_t kLongestKey = 200;         // bytes
inline constexpr std::size_t kLongestValue = 64 << 10;  // bytes

class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  /// A key is set once; setting it to another value throws Error{invalid_argument} that shows both.
  virtual void set(std::string_view key, std::string_view value) = 0;
  /// Waits until somebody has set it. Throws Error{timeout} that names the key and the store.
  virtual std::string get(std::string_view key, Deadline deadline) = 0;
};

/// Throws Error{invalid_argument} for an empty or too long key, or a too long value.
void check_entry(std::string_view key, std::string_view value);
/// The error of a key that has another value already.
[[noreturn]] void throw_taken(std::string_view key, std::string_view store, std::string_view has,
                              std::string_view wanted);
/// The error of a key that nobody has set; `turned_away` is who would perhaps have.
[[noreturn]] void throw_absent(std::string_view key, std::string_view store,
                               Clock::time_point begin, std::string_view turned_away = "");

}  // namespace sinew
