// Who goes on after a failure: the decision, without sockets, memory or clocks. Events go in,
// letters and one verdict come out, so that the same code runs in production, under a simulator and
// under a checker that tries every order of events.
//
// It is Paxos for one value, the set of those who go on. The lowest rank that seems to be there
// asks everyone it hopes to take along (`ask`), and they promise to follow nobody older. It then
// proposes them as members; each builds the new connections, and says so (`joined`). When all have,
// the ballot is concluded, and only then may anyone use what was built. So a rank that dies on the
// way costs another ballot, not a member that is alive.
//
// Nobody is taken for dead on hearsay: whoever is asked to go on without a rank first waits until
// it has seen the end of that rank itself, and by then it has read everything the rank ever said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "transport/rank_set.hpp"

namespace sinew {

/// Counts up over all proposers, and names them: see Membership::proposer().
using Ballot = std::uint64_t;

/// What ranks say to each other.
struct Notice {
  enum class Kind : std::uint8_t {
    here,     // I have come to decide
    ask,      // will you follow this ballot? `gone`: without these
    promise,  // I will; `accepted`, `members`: the last that I have joined
    refuse,   // I follow a later one, `ballot`; or this one could not be joined
    propose,  // join `members`
    joined,   // I have
  };
  Kind kind{};
  Ballot ballot = 0;
  Ballot accepted = 0;
  RankSet gone{}, members{};
  friend bool operator==(const Notice&, const Notice&) = default;
};
inline constexpr std::uint8_t kNoticeKinds = 6;

std::vector<std::byte> encode(const Notice& notice);
/// Nothing when the bytes are no notice in a group of `size`.
std::optional<Notice> decode_notice(std::span<const std::byte> bytes, int size);

/// Whether `members` may go on: those who are not among them and not surely dead might try the
/// same. So it takes everyone who is not surely dead; or more than half of the old group; or half
/// of it, if somebody is surely dead. Any two such sets have a rank in common that is alive, or
/// one of them is dead altogether. (Half of those who are left would not do: of five, two say yes
/// to a third and die; the other two, who see the deaths but not the third, are two of three.)
bool may_go_on(const RankSet& members, const RankSet& gone, int size);

class Membership {
 public:
  enum class Standing : std::uint8_t {
    deciding,
    member,       // of what was decided
    expelled,     // the others went on without this rank
    outnumbered,  // too few are left, unless one of those who are silent comes back
  };
  struct Attempt {
    Ballot ballot = 0;
    RankSet members{};
    friend bool operator==(const Attempt&, const Attempt&) = default;
  };
  struct Letter {
    int to = -1;
    Notice notice;
  };
  using Rule = bool (*)(const RankSet& members, const RankSet& gone, int size);

  /// Tells everyone that this rank has come.
  Membership(int rank, int size, Rule rule = &may_go_on);

  // Events.
  void hear(int from, const Notice& notice);
  /// `peer` is surely dead, and all it ever said has been heard.
  void lose(int peer);
  /// `peer` has been silent for too long. It may still speak, and is then none of this.
  void suspect(int peer);
  /// Some time has passed: says again what may have been missed, and tries again what was refused.
  void retry();
  /// What attempt() asked for is built; or cannot be.
  void joined(Ballot ballot);
  void cannot_join(Ballot ballot);
  /// Somebody has seen that all members of the ballot have joined.
  void conclude(Ballot ballot);

  // What follows.
  [[nodiscard]] std::vector<Letter> take_letters() { return std::exchange(letters_, {}); }
  /// What to build now, if anything. A ballot that is not here any more may be given up.
  [[nodiscard]] const std::optional<Attempt>& attempt() const noexcept { return attempt_; }
  [[nodiscard]] Standing standing() const;
  /// Where standing() is `member`.
  [[nodiscard]] const Attempt& decision() const noexcept { return *decision_; }
  /// 0, or a ballot that everybody must hear of before this rank moves on.
  [[nodiscard]] Ballot concluded() const noexcept { return concluded_; }

  [[nodiscard]] const RankSet& gone() const noexcept { return gone_; }
  [[nodiscard]] const RankSet& suspects() const noexcept { return suspects_; }
  [[nodiscard]] bool has_come(int peer) const noexcept { return came_.contains(peer); }
  [[nodiscard]] int proposer(Ballot ballot) const noexcept {
    return static_cast<int>((ballot - 1) % static_cast<Ballot>(size_));
  }
  /// How often somebody has tried; and the state, for whoever must tell states apart.
  [[nodiscard]] Ballot round(Ballot ballot) const noexcept {
    return ballot == 0 ? 0 : (ballot - 1) / static_cast<Ballot>(size_);
  }
  [[nodiscard]] Ballot promised() const noexcept { return promised_; }
  [[nodiscard]] bool waits_to_retry() const noexcept { return waits_; }
  void append_to(std::vector<std::uint64_t>& state) const;

 private:
  enum class Phase : std::uint8_t { idle, asking, joining };
  struct Question {
    Ballot ballot = 0;
    RankSet gone{};
  };
  [[nodiscard]] RankSet hopefuls() const { return all_.without(gone_).without(suspects_); }
  void say(int to, Notice notice);
  void tell_all(const Notice& notice);
  void take_question(int from, const Notice& notice);
  void answer();
  void promise(Ballot ballot);
  void take_promise(int from, const Notice& notice);
  void lead();
  void ask();
  void propose();
  void step_back();

  int rank_, size_;
  Rule rule_;
  RankSet all_, gone_, suspects_, came_;
  std::vector<Letter> letters_;

  // As one who follows.
  Ballot promised_ = 0;
  Attempt accepted_{};
  std::optional<Question> question_;  // that waits until we have seen the deaths it names
  std::optional<Attempt> attempt_;
  std::map<Ballot, RankSet> joined_;
  std::optional<Attempt> decision_;
  Ballot concluded_ = 0;
  bool expelled_ = false;

  // As one who leads.
  Phase phase_ = Phase::idle;
  Ballot ballot_ = 0, seen_ = 0;  // ours; the highest of others that refused it
  RankSet asked_{}, asked_without_{}, answered_{};
  Attempt best_{};  // the latest that one of the asked has joined before
  RankSet members_{};
  bool waits_ = false;  // for the next retry()
};

}  // namespace sinew
