#include "support/every_order.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <deque>
#include <map>
#include <unordered_set>
#include <vector>

namespace sinew::test {
namespace {

using Standing = Membership::Standing;

// A notice, or a conclusion, which travels in the same order.
struct Mail {
  Notice notice;
  Ballot conclusion = 0;
};

struct World {
  std::vector<Membership> ranks;
  std::vector<bool> alive;
  std::vector<std::deque<Mail>> lanes;  // [from * size + to]
  std::vector<std::deque<std::pair<int, Mail>>> outbox;
  std::map<Ballot, RankSet> building;  // who has begun to join
  int crashes = 0, suspicions = 0;
};

class Explorer {
 public:
  explicit Explorer(const Trouble& trouble) : trouble_(trouble), size_(trouble.size) {}

  Tried run() {
    World world;
    for (int rank = 0; rank < size_; ++rank) {
      world.ranks.emplace_back(rank, size_, trouble_.rule);
      world.alive.push_back(true);
    }
    world.lanes.resize(static_cast<std::size_t>(size_ * size_));
    world.outbox.resize(static_cast<std::size_t>(size_));
    for (int rank = 0; rank < size_; ++rank) collect(world, rank);
    if (trouble_.all_here) deliver_all(world);
    visit(std::move(world));
    while (!open_.empty() && result_.fault.empty()) {
      const auto next = std::move(open_.back());
      open_.pop_back();
      expand(next);
      if (seen_.size() > trouble_.most_states) result_.fault = "too many states";
    }
    result_.states = seen_.size();
    return result_;
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  std::deque<Mail>& lane(World& world, int from, int to) const {
    return world.lanes[at(from * size_ + to)];
  }

  void deliver_all(World& world) {
    for (int from = 0; from < size_; ++from) flush(world, from);
    for (int from = 0; from < size_; ++from)
      for (int to = 0; to < size_; ++to)
        for (auto& mails = lane(world, from, to); !mails.empty(); mails.pop_front())
          world.ranks[at(to)].hear(from, mails.front().notice);
    for (int rank = 0; rank < size_; ++rank) collect(world, rank);
  }

  // What follows from an event at `rank`: letters in its outbox, building begun.
  void collect(World& world, int rank) const {
    auto& machine = world.ranks[at(rank)];
    for (auto& letter : machine.take_letters()) {
      if (trouble_.spoil) trouble_.spoil(letter.notice);
      world.outbox[at(rank)].push_back({letter.to, {letter.notice, 0}});
    }
    if (const auto& attempt = machine.attempt()) {
      auto [entry, fresh] = world.building.try_emplace(attempt->ballot, RankSet(size_));
      entry->second.insert(rank);
    }
  }

  void flush(World& world, int rank) const {
    for (auto& box = world.outbox[at(rank)]; !box.empty(); box.pop_front())
      lane(world, rank, box.front().first).push_back(std::move(box.front().second));
  }

  void conclude(World& world, int rank) const {
    const auto ballot = world.ranks[at(rank)].concluded();
    // Those who lead hear of it last: that they do not hear it first is what may go wrong.
    for (int to = size_ - 1; to >= 0; --to)
      if (to != rank) world.outbox[at(rank)].push_back({to, {{}, ballot}});
  }

  template <class Event>
  void after(const World& before, int rank, Event event) {
    World world = before;
    auto& machine = world.ranks[at(rank)];
    const bool knew = machine.concluded() != 0;
    event(world, machine);
    collect(world, rank);
    if (!knew && machine.concluded() != 0) conclude(world, rank);
    // Once nobody can crash, it makes no difference when a letter leaves.
    if (world.crashes == trouble_.crashes)
      for (int r = 0; r < size_; ++r) flush(world, r);
    visit(std::move(world));
  }

  void expand(const World& world) {
    bool ended = true;
    for (int rank = 0; rank < size_; ++rank)
      if (world.alive[at(rank)]) ended &= !expand_rank(world, rank);
    if (ended) check_ending(world);
  }

  // Every event that can happen at a rank. False: none.
  bool expand_rank(const World& world, int rank) {
    const auto& machine = world.ranks[at(rank)];
    const bool decided =
        machine.standing() == Standing::member || machine.standing() == Standing::expelled;
    bool any = false;
    if (!world.outbox[at(rank)].empty()) {
      any = true;
      after(world, rank, [&](World& next, Membership&) {
        auto& box = next.outbox[at(rank)];
        lane(next, rank, box.front().first).push_back(std::move(box.front().second));
        box.pop_front();
      });
    }
    if (world.crashes < trouble_.crashes)
      after(world, rank, [&](World& next, Membership&) {
        next.alive[at(rank)] = false;
        next.outbox[at(rank)].clear();
        ++next.crashes;
      });
    if (decided) return any;
    for (int from = 0; from < size_; ++from) any |= expand_pair(world, rank, from);
    if (const auto& attempt = machine.attempt()) {
      const auto ballot = attempt->ballot;
      if (attempt->members.is_within(world.building.at(ballot))) {
        any = true;
        after(world, rank, [&](World&, Membership& m) { m.joined(ballot); });
      }
      if (attempt->members.without(machine.gone()) != attempt->members) {
        any = true;
        after(world, rank, [&](World&, Membership& m) { m.cannot_join(ballot); });
      }
    }
    if (machine.waits_to_retry() && machine.round(machine.promised()) < trouble_.rounds) {
      any = true;
      after(world, rank, [](World&, Membership& m) { m.retry(); });
    }
    return any;
  }

  bool expand_pair(const World& world, int rank, int from) {
    if (from == rank) return false;
    const auto& machine = world.ranks[at(rank)];
    const auto& mails = world.lanes[at(from * size_ + rank)];
    bool any = false;
    if (!mails.empty()) {
      any = true;
      after(world, rank, [&](World& next, Membership& m) {
        auto& queue = lane(next, from, rank);
        const auto mail = std::move(queue.front());
        queue.pop_front();
        mail.conclusion != 0 ? m.conclude(mail.conclusion) : m.hear(from, mail.notice);
      });
    } else if (!world.alive[at(from)] && !machine.gone().contains(from)) {
      any = true;
      after(world, rank, [&](World&, Membership& m) { m.lose(from); });
    }
    if (world.suspicions < trouble_.suspicions && !machine.gone().contains(from) &&
        !machine.suspects().contains(from))
      after(world, rank, [&](World& next, Membership& m) {
        ++next.suspicions;
        m.suspect(from);
      });
    return any;
  }

  void visit(World world) {
    // What comes to one who has decided, or is dead, changes nothing.
    for (int to = 0; to < size_; ++to) {
      const auto standing = world.ranks[at(to)].standing();
      if (world.alive[at(to)] && standing != Standing::member && standing != Standing::expelled)
        continue;
      for (int from = 0; from < size_; ++from) lane(world, from, to).clear();
    }
    check_agreement(world);
    if (seen_.insert(hash(world)).second) open_.push_back(std::move(world));
  }

  void check_agreement(const World& world) {
    const Membership::Attempt* first = nullptr;
    for (int rank = 0; rank < size_; ++rank) {
      const auto& machine = world.ranks[at(rank)];
      if (!world.alive[at(rank)] || machine.standing() != Standing::member) continue;
      const auto& decision = machine.decision();
      if (!decision.members.contains(rank)) fail(world, "a rank decides on others only");
      if (first != nullptr && decision != *first) fail(world, "two ranks decide differently");
      first = &decision;
    }
    for (int rank = 0; first != nullptr && rank < size_; ++rank)
      if (world.alive[at(rank)] && world.ranks[at(rank)].standing() == Standing::expelled &&
          first->members.contains(rank))
        fail(world, "a member is told that it was given up");
  }

  // Where nobody was suspected, nobody is given up, and everyone who lives decides.
  void check_ending(const World& world) {
    ++result_.endings;
    for (int rank = 0; rank < size_; ++rank) {
      if (!world.alive[at(rank)]) continue;
      const auto& machine = world.ranks[at(rank)];
      if (machine.standing() == Standing::member) ++result_.decided;
      if (world.suspicions == 0 && machine.standing() != Standing::member)
        fail(world, fmt::format("rank {} hangs", rank));
    }
  }

  void fail(const World& world, const std::string& why) {
    result_.fault = why + ":";
    for (int rank = 0; rank < size_; ++rank) {
      const auto& machine = world.ranks[at(rank)];
      result_.fault += fmt::format(
          " rank {} {} gone [{}] suspects [{}] promised {} {}", rank,
          world.alive[at(rank)] ? "lives" : "died", fmt::join(machine.gone().list(), " "),
          fmt::join(machine.suspects().list(), " "), machine.promised(),
          machine.standing() == Standing::member
              ? fmt::format("decided [{}] by {};",
                            fmt::join(machine.decision().members.list(), " "),
                            machine.decision().ballot)
              : fmt::format("standing {};", static_cast<int>(machine.standing())));
    }
  }

  struct Hash {
    std::uint64_t high, low;
    friend bool operator==(const Hash&, const Hash&) = default;
  };
  struct Low {
    std::size_t operator()(const Hash& hash) const { return hash.low; }
  };

  static void append(std::vector<std::uint64_t>& state, const Mail& mail) {
    const auto add = [&](const RankSet& set) {
      state.push_back(set.words().empty() ? 0 : set.words()[0]);
    };
    state.insert(state.end(), {static_cast<std::uint64_t>(mail.notice.kind), mail.notice.ballot,
                               mail.notice.accepted, mail.conclusion});
    add(mail.notice.gone);
    add(mail.notice.members);
  }

  Hash hash(const World& world) {
    state_.clear();
    for (int rank = 0; rank < size_; ++rank) {
      state_.push_back(world.alive[at(rank)] ? 1 : 0);
      world.ranks[at(rank)].append_to(state_);
      state_.push_back(world.outbox[at(rank)].size());
      for (const auto& [to, mail] : world.outbox[at(rank)]) {
        state_.push_back(static_cast<std::uint64_t>(to));
        append(state_, mail);
      }
    }
    for (const auto& mails : world.lanes) {
      state_.push_back(mails.size());
      for (const auto& mail : mails) append(state_, mail);
    }
    for (const auto& [ballot, who] : world.building) {
      state_.push_back(ballot);
      state_.push_back(who.words()[0]);
    }
    state_.push_back(static_cast<std::uint64_t>(world.crashes * 16 + world.suspicions));
    const auto hash = XXH3_128bits(state_.data(), state_.size() * sizeof(std::uint64_t));
    return {hash.high64, hash.low64};
  }

  Trouble trouble_;
  int size_;
  std::vector<World> open_;
  std::unordered_set<Hash, Low> seen_;
  std::vector<std::uint64_t> state_;
  Tried result_;
};

}  // namespace

Tried try_every_order(const Trouble& trouble) { return Explorer(trouble).run(); }

}  // namespace sinew::test
