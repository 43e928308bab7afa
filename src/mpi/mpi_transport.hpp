// The transport over an MPI's point-to-point, compiled once for each MPI.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "mpi/farewell.hpp"
#include "mpi/history.hpp"
#include "mpi/hosts.hpp"
#include "mpi/process.hpp"
#include "runtime/plugin.hpp"

namespace sinew::mpi {

class MpiTransport final : public Transport, private Open {
 public:
  using Describe = std::string (*)(const OpDescriptor&);
  /// Joins the group of all ranks that mpirun started. Called by all of them. Throws Error.
  static std::unique_ptr<Transport> join(const PluginJoin& join);
  /// Takes `comm`. `residents`: one of each rank.
  MpiTransport(MPI_Comm comm, std::vector<Resident> residents, Describe describe);
  ~MpiTransport() override;

  [[nodiscard]] std::string_view name() const noexcept override { return "mpi"; }
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  [[nodiscard]] Capabilities capabilities() const noexcept override { return {}; }
  [[nodiscard]] int cores() const noexcept override { return cores_; }
  [[nodiscard]] std::span<const int> node_of() const noexcept override { return node_of_; }
  [[nodiscard]] NodeLink between_nodes() const noexcept override;
  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override;
  Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept override;
  Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                       const Reducer& reducer) noexcept override;
  void enter(OpTag tag, const OpDescriptor& descriptor) noexcept override;
  Progress park(bool moved, Deadline deadline) noexcept override;
  [[nodiscard]] bool has_left(int peer) const noexcept override {
    return peers_[static_cast<std::size_t>(peer)].left;
  }
  Progress mismatched(int peer) noexcept override;
  [[nodiscard]] Failure failure() const override { return failure_; }
  [[nodiscard]] std::string who_is_late() const override;
  void poison(const Failure& failure) noexcept override;
  std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                    Deadline deadline) override;

 private:
  /// What is known of another rank.
  struct Peer {
    std::uint32_t sequence = 0;  // of the operation it last told of
    bool left = false;
    bool closed = false;     // it will not read any more what this rank sends
    std::uint64_t here = 0;  // the subset it has come for
  };

  void close() noexcept override;
  [[nodiscard]] bool failed() const noexcept override { return failed_; }
  bool may_receive(const Transfer& transfer, std::size_t bytes) noexcept;
  Progress after(Lanes::Step step, const Transfer& transfer, std::size_t bytes) noexcept;
  Progress fail(Errc code, int peer, const std::string& why) noexcept;
  Progress park_slowly(Deadline deadline) noexcept;
  Progress look_around() noexcept;
  void listen() noexcept;
  void hear(int from, const ControlMessage& message) noexcept;
  void stop(const Failure& failure) noexcept;
  bool is_lent() noexcept;
  void wait_for_members(std::span<const int> members, std::string_view label, Deadline deadline);
  [[nodiscard]] std::string story(int peer, const Difference& difference) const;
  [[nodiscard]] std::uint32_t last_seen(int peer) const noexcept;
  Peer& peer(int rank) noexcept { return peers_[static_cast<std::size_t>(rank)]; }

  std::unique_ptr<Wire> wire_;  // null: closed
  int rank_ = 0, size_ = 1;
  std::vector<Resident> residents_;
  int cores_;
  std::vector<int> node_of_;
  Describe describe_;
  History history_;
  std::vector<Peer> peers_;
  bool failed_ = false;
  Failure failure_;

  // Waiting, from cheap to dear: see park().
  int spin_limit_;
  int idle_ = 0;
  Clock::time_point waits_since_{}, next_status_{};
  std::int64_t listened_ms_ = 0;
  std::uint32_t looks_ = 0;  // for messages
};

}  // namespace sinew::mpi
