// A small store for the ranks of one job, served from a thread of its own: whoever owns it (rank 0)
// waits in many ways while ranks join, and none of those needs to know about the store. Strangers
// cannot get in, nor keep others out: nothing is kept for them but a handshake, for a few seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "transport/rendezvous/address.hpp"
#include "transport/trust/token.hpp"

namespace sinew {

class StoreServer {
 public:
  struct Options {
    int size = 0;             // ranks of the job; 0: any number
    std::uint32_t epoch = 0;  // membership served
    std::chrono::milliseconds handshake_time{5000};
    std::size_t most_strangers = 64;  // in a handshake at a time; the oldest makes room
    std::size_t most_clients = 65536;
    std::size_t most_bytes = std::size_t{64} << 20;  // of all keys and values
    /// Told, from the server's thread, how many were turned away: the first at once, later ones
    /// together, not more often than this.
    std::function<void(std::string_view)> warn{};
    std::chrono::milliseconds between_warnings{60'000};
  };
  /// Listens. Throws Error when that is not possible; see listen_at().
  StoreServer(const Address& address, const Token& token, const Options& options);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// With the port that the system chose.
  [[nodiscard]] const Address& address() const noexcept;

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace sinew
