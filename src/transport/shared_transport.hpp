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
#include "transport/shared_hotline.hpp"
#include "transport/time_slice.hpp"

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
  /// `check` is called now and then while members are waited for; it throws when one of us is gone.
  using Subset = std::function<std::unique_ptr<Transport>(
      std::span<const int> members, std::string_view label, Deadline, const Check& check)>;
  /// `cores`: how many processors all ranks together may use. The status lines must say already
  /// which domains ranks are in.
  SharedTransport(std::string_view name, std::shared_ptr<Segment> segment, int rank, int cores,
                  std::unique_ptr<Watch> watch, Subset subset);
  ~SharedTransport() override;

  /// What ranks are called in error texts, where they are some of a larger group.
  void call_ranks(std::vector<int> names) { names_ = std::move(names); }
  /// For sleeping on other descriptors as well; see Doorbell.
  int bell_socket() noexcept { return doorbell_.socket(); }
  /// False: announced already, so that the caller has looked once more and can sleep now.
  bool announce_sleep() noexcept;
  void wake_up() noexcept { doorbell_.answer(); }

  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return segment_->ranks(); }
  [[nodiscard]] Capabilities capabilities() const noexcept override {
    return {.board = true, .shared_buffers = true, .across_nodes = true, .pull = board_.can_pull()};
  }
  [[nodiscard]] int cores() const noexcept override { return cores_; }
  [[nodiscard]] std::span<const int> node_of() const noexcept override { return node_of_; }
  [[nodiscard]] NodeLink between_nodes() const noexcept override;
  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override;
  Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept override;
  Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                       const Reducer& reducer) noexcept override;
  Board* board() noexcept override { return &board_; }
  Arena* arena() noexcept override { return &arena_; }
  Hotline* hotline() noexcept override { return &hotline_; }
  void enter(OpTag tag, const OpDescriptor& descriptor) noexcept override;
  Progress park(bool moved, Deadline deadline) noexcept override;
  [[nodiscard]] bool has_left(int peer) const noexcept override {
    // acquire pairs with the release in the destructor: all it sent is there
    return segment_->status(peer).state.load(std::memory_order_acquire) == RankState::left;
  }
  Progress mismatched(int peer) noexcept override;
  Progress wrong_length(int peer, std::uint64_t sent, std::uint64_t expected) noexcept override;
  [[nodiscard]] Failure failure() const override;
  [[nodiscard]] std::string who_is_late() const override;
  void poison(const Failure& failure) noexcept override;
  /// Whether `peer` has died or left.
  [[nodiscard]] bool is_gone(int peer) noexcept;
  /// What `peer` did last, for people.
  [[nodiscard]] std::string last_seen(int peer) const;
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
  // A transfer cannot move: any sign from its peer may change that.
  Progress not_yet() noexcept {
    board_.want(Want::anything());
    return Progress::pending;
  }
  Progress park_slowly(Deadline deadline) noexcept;
  Progress look_around() noexcept;
  void count_dead() noexcept;
  void await_descriptor(int peer) const noexcept;

  [[nodiscard]] int called(int rank) const noexcept {
    return names_.empty() ? rank : names_[static_cast<std::size_t>(rank)];
  }

  std::string name_;
  std::vector<int> names_;  // of the ranks; empty: their numbers
  std::shared_ptr<Segment> segment_;
  int rank_;
  StatusLine& status_;  // this rank's
  int cores_;
  std::vector<int> node_of_;
  Doorbell doorbell_;
  Board board_;
  Arena arena_;
  std::unique_ptr<Watch> watch_;
  std::vector<bool> dead_;  // by rank, as the watch has told
  Subset subset_;
  SharedHotline hotline_;
  std::vector<End> sending_, receiving_;
  OpTag entered_;        // the operation this rank is in, or was last
  Failure own_failure_;  // what this rank reported, should nobody's report be complete

  // Waiting, from cheap to dear: see park().
  int spin_limit_;
  int idle_ = 0;
  int sleep_first_ = 0;      // waits left that skip yielding, because a stranger has our core
  TimeSlice slice_;          // shorter for as long
  int suspicion_ = 0;        // above 0 for some yields after a long one
  std::uint32_t waits_ = 0;  // that came to yielding
  Clock::time_point last_look_{};
};

}  // namespace sinew
