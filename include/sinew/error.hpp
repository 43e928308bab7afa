// The one exception Sinew throws: a code to branch on and a story to read.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sinew {

enum class Errc : std::uint8_t {
  invalid_argument,  // the caller asked for something that does not exist or does not fit
  unsupported,       // known, but not for this type, transport or rank count
  not_verified,      // a schedule that does not do what its collective promises
  mismatch,          // two ranks called different operations
  peer_lost,         // a rank died or left while it was needed
  timeout,           // a deadline passed
  out_of_memory,
  system,    // the operating system refused
  expelled,  // the others gave this rank up, and went on without it
  minority,  // too few ranks are left to go on: those who are silent might go on elsewhere
};

std::string_view name(Errc code) noexcept;

/// Where in a collective an error happened. Fields that do not apply keep their defaults.
struct ErrorContext {
  int rank = -1;
  int peer = -1;
  std::string operation{};       // "allreduce", or "" outside any operation
  std::uint64_t sequence = 0;    // number of the operation on its communicator, from 1
  std::uint64_t bytes_done = 0;  // of the transfer that failed
  std::uint64_t bytes_expected = 0;
  std::uint64_t elapsed_ns = 0;  // since the operation began
};

class Error : public std::runtime_error {
 public:
  Error(Errc code, const std::string& what) : std::runtime_error(what), code_(code) {}
  Error(Errc code, const std::string& what, ErrorContext context)
      : std::runtime_error(what), code_(code), context_(std::move(context)) {}

  [[nodiscard]] Errc code() const noexcept { return code_; }
  [[nodiscard]] const ErrorContext& context() const noexcept { return context_; }

 private:
  Errc code_;
  ErrorContext context_;
};

}  // namespace sinew
