// A medium that misbehaves as told: transfers stall for a while, and one of them fails.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "transport/decorated.hpp"

namespace sinew {

struct Faults {
  std::uint64_t seed = 1;
  double stall_chance = 0;    // that an attempt does nothing, as if the medium were busy
  std::uint64_t fail_at = 0;  // the transfer that fails when it would complete, from 1; 0: none
  Failure failure{Errc::peer_lost, -1, "injected fault"};  // peer -1: whoever the transfer is with
};

class FaultyTransport final : public DecoratedMessages {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, Faults faults);

  [[nodiscard]] std::string_view name() const noexcept override { return "faulty"; }
  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override;
  Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept override;
  Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                       const Reducer& reducer) noexcept override;
  Progress park(bool moved, Deadline deadline) noexcept override;
  [[nodiscard]] bool has_left(int peer) const noexcept override;
  std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                    Deadline deadline) override;

 private:
  template <class Verb>
  Progress attempt(const Transfer& transfer, bool sends, Verb verb) noexcept;

  Faults faults_;
  std::mt19937_64 random_;
  std::uint64_t completed_ = 0;
  std::vector<const Transfer*> stalled_;  // by direction, peer and channel: those after it wait
  bool any_stalled_ = false;              // since the last park()
};

}  // namespace sinew
