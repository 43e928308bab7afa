// Where ranks leave words for each other before they are connected.
#pragma once

#include <string>
#include <string_view>

#include <sinew/transport.hpp>

namespace sinew {

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

}  // namespace sinew
