// The transport over a shared segment: what local (threads) and shm (processes) have in common,
// which is everything but how ranks find the segment and how they notice a death.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "transport/arena.hpp"
#include "transport/board.hpp"
#include "transport/descriptor.hpp"
#include "transport/doorbell.hpp"
#include "transport/segment.hpp"

namespace sinew {

/// Notices ranks that died without leaving.
class Watch {
 public:
  virtual ~Watch() = default;
  /// A rank that has died, or -1. Cheap enough to ask a few hundred times a second.
  virtual int find_dead() noexcept = 0;
};

class SharedTransport final : public Transport {
 public:
  using Subset = std::function<std::unique_ptr<Transport>(std::span<const int> members,
                                                          std::string_view label, Deadline)>;
  /// `cores`: how many processors all ranks together may use.
  SharedTransport(std::string_view name, std::shared_ptr<Segment> segment, int rank, int cores,
                  std::unique_ptr<Watch> watch, Subset subset);
  ~SharedTransport() override;

  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return segment_->ranks(); }
  [[nodiscard]] Capabilities capabilities() const noexcept override { return {true, true}; }
  [[nodiscard]] int cores() const noexcept override { return cores_; }
  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override;
  Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept override;
  Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                       const Reducer& reducer) noexcept override;
  Board* board() noexcept override { return &board_; }
  Arena* arena() noexcept override { return &arena_; }
  void enter(OpTag tag, const OpDescriptor& descriptor) noexcept override;
  Progress park(bool moved, Deadline deadline) noexcept override;
  Progress mismatched(int peer) noexcept override;
  [[nodiscard]] Failure failure() const override;
  [[nodiscard]] std::string who_is_late() const override;
  void poison(const Failure& failure) noexcept override;
  std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                    Deadline deadline) override;

 private:
  struct End {                       // this rank's side of one lane
    std::uint64_t next = 0;          // fragment to send or take next
    std::uint64_t freed = 0;         // sender: what it last saw the receiver free
    const Transfer* turn = nullptr;  // begun and not finished: all others wait until it is
  };
  template <class Consume>
  Progress receive(Transfer& transfer, std::size_t bytes, Consume consume) noexcept;
  End& end(std::vector<End>& ends, const Transfer& transfer) noexcept {
    return ends[static_cast<std::size_t>(transfer.peer) * kChannels + transfer.channel];
  }
  Progress park_slowly(Deadline deadline) noexcept;
  Progress look_around() noexcept;
  Progress wrong_length(int peer, std::uint64_t sent, std::uint64_t expected) noexcept;

  std::string name_;
  std::shared_ptr<Segment> segment_;
  int rank_;
  int cores_;
  Doorbell doorbell_;
  Board board_;
  Arena arena_;
  std::unique_ptr<Watch> watch_;
  Subset subset_;
  std::vector<End> sending_, receiving_;
  OpTag entered_;        // the operation this rank is in, or was last
  Failure own_failure_;  // what this rank reported, should nobody's report be complete

  // Waiting, from cheap to dear: see park().
  int spin_limit_;
  int idle_ = 0;
  int sleep_first_ = 0;  // waits left that skip yielding, because a stranger has our core
  Clock::time_point last_look_{};
};

}  // namespace sinew
