// The transport over sockets: transfers cut into frames, each checked before it is used.
#pragma once

#include <functional>
#include <vector>

#include "transport/tcp/connection.hpp"
#include "transport/tcp/mesh.hpp"
#include "transport/tcp/peers.hpp"
#include "transport/tcp/tcp_hotline.hpp"

namespace sinew::tcp {

class TcpTransport final : public Transport {
 public:
  TcpTransport(const TcpJoin& join, Mesh mesh);
  ~TcpTransport() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "tcp"; }
  [[nodiscard]] int rank() const noexcept override { return join_.rank; }
  [[nodiscard]] int size() const noexcept override { return join_.size; }
  [[nodiscard]] Capabilities capabilities() const noexcept override { return {}; }
  [[nodiscard]] int cores() const noexcept override { return cores_; }
  [[nodiscard]] std::size_t slice_bytes() const noexcept override { return slice_bytes_; }
  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override;
  Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept override;
  Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                       const Reducer& reducer) noexcept override;
  void enter(OpTag tag, const OpDescriptor& descriptor) noexcept override {
    peers_.enter(tag, descriptor);
  }
  Progress park(bool moved, Deadline deadline) noexcept override;
  bool also_wake_by(int descriptor) noexcept override {
    waiter_.also_wake_by(descriptor);
    return true;
  }
  [[nodiscard]] bool has_left(int peer) const noexcept override { return peers_.has_left(peer); }
  Progress mismatched(int peer) noexcept override { return peers_.mismatched(peer); }
  [[nodiscard]] Failure failure() const override { return peers_.failure(); }
  [[nodiscard]] std::string who_is_late() const override { return peers_.who_is_late(); }
  void poison(const Failure& failure) noexcept override { peers_.poison(failure); }
  Hotline* hotline() noexcept override { return &hotline_; }
  std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                    Deadline deadline) override;

 private:
  /// One channel to or from one peer: the transfer whose turn it is, and how far it has come.
  struct Flow {
    const Transfer* turn = nullptr;   // begun and not finished: all others wait until it is
    std::uint64_t frames = 0;         // of the transfer
    std::uint64_t done = 0;           // frames of it
    std::vector<std::uint64_t> next;  // frame for each stream
  };
  Flow& flow(std::vector<Flow>& flows, const Transfer& transfer) noexcept {
    return flows[static_cast<std::size_t>(transfer.peer) * kChannels + transfer.channel];
  }
  Connection& connection(const Transfer& transfer, std::size_t stream) noexcept {
    return connections_
        [static_cast<std::size_t>(transfer.peer)]
        [static_cast<std::size_t>(slots_.of(transfer.channel, static_cast<int>(stream))) - 1];
  }
  bool begin(Flow& flow, const Transfer& transfer, std::size_t bytes) noexcept;
  void queue_frames(Connection& to, const Transfer& transfer, std::span<const std::byte> data,
                    const Flow& flow, std::size_t stream) noexcept;
  Progress send_frames(Transfer& transfer, std::span<const std::byte> data, Flow& flow,
                       std::size_t stream) noexcept;
  template <class Target>
  Progress receive(Transfer& transfer, std::span<std::byte> data, Target target) noexcept;
  template <class Target>
  Progress receive_frame(Transfer& transfer, std::span<std::byte> data, Flow& flow,
                         std::size_t stream, Target target) noexcept;
  Progress check_header(Connection& from, const Transfer& transfer, std::uint64_t offset,
                        std::size_t length, std::size_t total) noexcept;
  Progress refuse(int peer, Errc code, const std::string& why) noexcept;
  Progress ended(Connection& connection, Gate& gate, int peer, bool awaited) noexcept;
  Progress not_parked() noexcept;
  void linger() noexcept;
  [[nodiscard]] TcpJoin part(std::span<const int> members, std::string_view label,
                             const Check& check) const;
  std::unique_ptr<Transport> regroup(const Regroup& whom, Deadline deadline, const Check& check);

  TcpJoin join_;
  int cores_;
  std::size_t slice_bytes_;
  Slots slots_;
  std::size_t chunk_;
  std::vector<std::vector<Connection>> connections_;  // [peer][slot - 1]
  std::shared_ptr<Peers> own_peers_;                  // a later epoch may keep them
  Peers& peers_;
  TcpHotline hotline_;
  Waiter waiter_;
  std::vector<Flow> sending_, receiving_;
  bool moved_ = false;     // frames, since the last park: even if no transfer became complete
  std::uint32_t dry_ = 0;  // attempts in vain since the last park
};

}  // namespace sinew::tcp
