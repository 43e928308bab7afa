#include "transport/routed/routed.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "transport/hotline.hpp"
#include "transport/shared_transport.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// Nobody has measured the network; one of 10 Gbit/s and 20 us makes the choices that most need.
constexpr NodeLink kLink{.message_ns = 20'000, .byte_ns = 0.8};
// Without a socket that shared memory can wake a rank by, it looks up this often.
constexpr auto kNap = 1ms;
constexpr int kLooks = 50;  // both ways, yielding in between, before it sleeps

class Routed;

// Words go by the sockets, which reach everyone.
class RoutedHotline final : public Hotline {
 public:
  explicit RoutedHotline(Routed& routed) : routed_(routed) {}
  [[nodiscard]] std::size_t longest() const noexcept override { return far().longest(); }
  bool tell(int peer, std::span<const std::byte> message) noexcept override {
    return far().tell(peer, message);
  }
  std::size_t hear(int peer, std::span<std::byte> message) noexcept override {
    return far().hear(peer, message);
  }
  bool is_gone(int peer) noexcept override { return far().is_gone(peer); }
  [[nodiscard]] std::string last_seen(int peer) const override { return far().last_seen(peer); }
  void conclude(std::uint64_t ballot) noexcept override { far().conclude(ballot); }
  std::uint64_t concluded() noexcept override { return far().concluded(); }
  void rest() noexcept override { far().rest(); }
  std::unique_ptr<Transport> regroup(const Regroup& whom, Deadline deadline,
                                     const Check& check) override;

 private:
  [[nodiscard]] Hotline& far() const noexcept;
  Routed& routed_;
};

class Routed final : public Transport {
 public:
  explicit Routed(Routes routes)
      : far_(std::move(routes.far)),
        near_(std::move(routes.near)),
        node_of_(std::move(routes.node_of)),
        near_rank_(node_of_.size(), -1) {
    std::vector<int> names;  // of the near ranks, by which errors should speak of them
    for (std::size_t rank = 0; rank < node_of_.size(); ++rank) {
      if (node_of_[rank] != own_node()) continue;
      near_rank_[rank] = static_cast<int>(names.size());
      names.push_back(static_cast<int>(rank));
    }
    shared_ = dynamic_cast<SharedTransport*>(near_.get());
    if (shared_ == nullptr) return;
    shared_->call_ranks(names);
    const int bell = shared_->bell_socket();
    wakes_ = bell >= 0 && far_->also_wake_by(bell);
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "auto"; }
  [[nodiscard]] int rank() const noexcept override { return far_->rank(); }
  [[nodiscard]] int size() const noexcept override { return far_->size(); }
  // Steps on a board are for all ranks of a group, and no board reaches them all.
  [[nodiscard]] Capabilities capabilities() const noexcept override { return {false, false}; }
  [[nodiscard]] int cores() const noexcept override { return far_->cores(); }
  [[nodiscard]] std::span<const int> node_of() const noexcept override { return node_of_; }
  [[nodiscard]] NodeLink between_nodes() const noexcept override { return kLink; }

  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override {
    return by(transfer, [&](Transport& way) { return way.send(transfer, data); });
  }
  Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept override {
    return by(transfer, [&](Transport& way) { return way.recv(transfer, data); });
  }
  Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                       const Reducer& reducer) noexcept override {
    return by(transfer, [&](Transport& way) { return way.recv_reduce(transfer, data, reducer); });
  }

  void enter(OpTag tag, const OpDescriptor& descriptor) noexcept override {
    if (near_) near_->enter(tag, descriptor);
    far_->enter(tag, descriptor);
  }

  Progress park(bool moved, Deadline deadline) noexcept override {
    if (failed_) return Progress::failed;
    if (!near_) return far_->park(moved, deadline);
    if (moved) {
      looks_ = 0;
      near_->park(true, deadline);
      far_->park(true, deadline);
      return Progress::pending;
    }
    const auto now = Clock::now();
    const bool sleeps = ++looks_ > kLooks;
    if (sleeps && wakes_ && shared_->announce_sleep()) return Progress::pending;
    const auto until = !sleeps ? now : wakes_ ? deadline : std::min(deadline, now + kNap);
    const auto far = far_->park(false, until);
    if (sleeps && wakes_) shared_->wake_up();
    if (far == Progress::failed) return give_up(*far_, near_.get());
    if (near_->park(false, now) == Progress::failed) return give_up(*near_, far_.get());
    return Progress::pending;
  }

  [[nodiscard]] bool has_left(int peer) const noexcept override {
    return is_near(peer) ? near_->has_left(near_rank(peer)) : far_->has_left(peer);
  }
  Progress mismatched(int peer) noexcept override {
    return is_near(peer) ? note(near_->mismatched(near_rank(peer)), *near_, far_.get())
                         : note(far_->mismatched(peer), *far_, near_.get());
  }
  [[nodiscard]] Failure failure() const override {
    auto failure = far_->failure();
    return failed_ && failure.code != Errc::expelled ? *failed_ : failure;
  }
  [[nodiscard]] std::string who_is_late() const override { return far_->who_is_late(); }
  void poison(const Failure& failure) noexcept override {
    if (!failed_) failed_ = failure;
    if (near_) near_->poison(failure);
    far_->poison(failure);
  }

  Hotline* hotline() noexcept override { return &hotline_; }

  std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                    Deadline deadline) override {
    return part_of(members, [&](Transport& way, std::span<const int> those) {
      return way.subset(those, label, deadline);
    });
  }

 private:
  friend class RoutedHotline;
  template <class Make>
  std::unique_ptr<Transport> part_of(std::span<const int> members, Make make) {
    Routes part;
    std::vector<int> mine;
    for (const int member : members) {
      part.node_of.push_back(node_of_[static_cast<std::size_t>(member)]);
      if (is_near(member)) mine.push_back(near_rank(member));
    }
    part.far = make(*far_, members);
    if (mine.size() > 1) part.near = make(*near_, std::span<const int>(mine));
    return route(std::move(part));
  }

  [[nodiscard]] int own_node() const noexcept {
    return node_of_[static_cast<std::size_t>(far_->rank())];
  }
  [[nodiscard]] int near_rank(int peer) const noexcept {
    return near_rank_[static_cast<std::size_t>(peer)];
  }
  [[nodiscard]] bool is_near(int peer) const noexcept { return near_ && near_rank(peer) >= 0; }

  // The transfer stays the caller's own: transports know it by its address.
  template <class Verb>
  Progress by(Transfer& transfer, Verb verb) noexcept {
    if (!is_near(transfer.peer)) return note(verb(*far_), *far_, near_.get());
    const int peer = transfer.peer;
    transfer.peer = near_rank(peer);
    const auto progress = verb(*near_);
    transfer.peer = peer;
    return note(progress, *near_, far_.get());
  }
  Progress note(Progress progress, const Transport& where, Transport* other) noexcept {
    return progress == Progress::failed ? give_up(where, other) : progress;
  }
  // What broke one way is told along the other, and the first story is the one that counts.
  Progress give_up(const Transport& where, Transport* other) noexcept {
    if (!failed_) {
      failed_ = where.failure();
      if (other != nullptr) other->poison(*failed_);
    }
    return Progress::failed;
  }

  std::unique_ptr<Transport> far_, near_;
  std::vector<int> node_of_;
  std::vector<int> near_rank_;  // of each rank, in near_; -1: it is on another host
  std::optional<Failure> failed_;
  RoutedHotline hotline_{*this};
  SharedTransport* shared_ = nullptr;  // near_
  bool wakes_ = false;                 // near ranks wake this one while it sleeps in far_
  int looks_ = 0;                      // in a row that found nothing
};

Hotline& RoutedHotline::far() const noexcept { return *routed_.far_->hotline(); }

std::unique_ptr<Transport> RoutedHotline::regroup(const Regroup& whom, Deadline deadline,
                                                  const Check& check) {
  return routed_.part_of(whom.members, [&](Transport& way, std::span<const int> those) {
    return way.hotline()->regroup({those, whom.epoch, whom.label}, deadline, check);
  });
}

}  // namespace

std::unique_ptr<Transport> route(Routes routes) {
  const std::set<int> nodes(routes.node_of.begin(), routes.node_of.end());
  if (nodes.size() == routes.node_of.size()) return std::move(routes.far);
  return std::make_unique<Routed>(std::move(routes));
}

}  // namespace sinew
