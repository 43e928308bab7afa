// The hotline over control connections.
#pragma once

#include <memory>

#include "transport/hotline.hpp"
#include "transport/tcp/peers.hpp"

namespace sinew::tcp {

class TcpHotline final : public Hotline {
 public:
  /// Connects some of the ranks anew.
  using Connect = std::function<std::unique_ptr<Transport>(const Regroup&, Deadline, const Check&)>;
  TcpHotline(Peers& peers, Connect connect) : peers_(peers), connect_(std::move(connect)) {}

  [[nodiscard]] std::size_t longest() const noexcept override { return wire::kMostControl; }
  bool tell(int peer, std::span<const std::byte> message) noexcept override {
    return peers_.tell(peer, wire::Kind::notice, message);
  }
  std::size_t hear(int peer, std::span<std::byte> message) noexcept override;
  bool is_gone(int peer) noexcept override;
  [[nodiscard]] std::string last_seen(int peer) const override { return peers_.last_seen(peer); }
  void conclude(std::uint64_t ballot) noexcept override { peers_.conclude(ballot); }
  std::uint64_t concluded() noexcept override { return peers_.concluded(); }
  void rest() noexcept override;
  std::unique_ptr<Transport> regroup(const Regroup& whom, Deadline deadline,
                                     const Check& check) override {
    return connect_(whom, deadline, check);
  }

 private:
  Peers& peers_;
  Connect connect_;
};

}  // namespace sinew::tcp
