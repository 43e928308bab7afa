#include "runtime/shrink.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>

#include <sinew/error.hpp>
#include "transport/hotline.hpp"
#include "transport/membership.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
using Standing = Membership::Standing;

constexpr Clock::duration kRetry = 20ms;       // plus as much for every rank before this one
constexpr Clock::duration kRetryMost = 500ms;  // in all
constexpr Clock::duration kDecide = 10s;       // once nobody more is waited for

class Decision {
 public:
  Decision(Transport& transport, const Shrink& how)
      : transport_(transport),
        line_(*transport.hotline()),
        how_(how),
        machine_(transport.rank(), transport.size()),
        outbox_(static_cast<std::size_t>(transport.size())),
        heard_(outbox_.size(), transport.now()),
        room_(line_.longest()),
        deadline_(transport.now() + how.patience + kDecide),
        next_retry_(transport.now() + pause()) {}

  Survivors run() {
    while (true) {
      pump();
      if (machine_.concluded() != 0) line_.conclude(machine_.concluded());
      switch (machine_.standing()) {
        case Standing::member:
          return finish();
        case Standing::expelled: {
          flush();
          const auto failure = given_up(transport_.rank());
          throw Error(failure.code, failure.why, {.rank = transport_.rank()});
        }
        case Standing::outnumbered:
          throw_outnumbered();
        case Standing::deciding:
          break;
      }
      if (transport_.now() > deadline_) throw_undecided();
      if (machine_.attempt())
        join(*machine_.attempt());
      else
        line_.rest();
    }
  }

 private:
  static std::size_t at(int peer) { return static_cast<std::size_t>(peer); }
  [[nodiscard]] int size() const { return transport_.size(); }
  [[nodiscard]] Clock::duration pause() const {
    return std::min<Clock::duration>(
        {kRetryMost, kRetry * (1 + transport_.rank()), how_.patience / 4});
  }

  void pump() {
    for (int peer = 0; peer < size(); ++peer)
      if (peer != transport_.rank()) listen_to(peer);
    if (const auto ballot = line_.concluded(); ballot != 0) machine_.conclude(ballot);
    if (const auto now = transport_.now(); now >= next_retry_) {
      next_retry_ = now + pause();
      machine_.retry();
    }
    flush();
  }

  void listen_to(int peer) {
    const bool gone = line_.is_gone(peer);  // asked first: then all it said is there to be heard
    const auto now = transport_.now();
    for (auto bytes = line_.hear(peer, room_); bytes > 0; bytes = line_.hear(peer, room_)) {
      heard_[at(peer)] = now;
      if (const auto notice = decode_notice(std::span(room_).first(bytes), size()))
        machine_.hear(peer, *notice);
    }
    if (gone) return machine_.lose(peer);
    if (now - heard_[at(peer)] > how_.patience) machine_.suspect(peer);
  }

  void flush() {
    for (auto& letter : machine_.take_letters()) {
      auto& waiting = outbox_[at(letter.to)];
      // Said again and again; once on its way is enough.
      if (letter.notice.kind != Notice::Kind::here || waiting.empty())
        waiting.push_back(encode(letter.notice));
    }
    for (int peer = 0; peer < size(); ++peer)
      for (auto& waiting = outbox_[at(peer)];
           !waiting.empty() && line_.tell(peer, waiting.front());)
        waiting.pop_front();
  }

  // Building is given up as soon as the ballot is: somebody has died, or leads who was silent.
  void join(const Membership::Attempt& attempt) {
    const auto ballot = attempt.ballot;
    const auto members = attempt.members.list();
    try {
      built_[ballot] =
          line_.regroup({members, how_.epoch, fmt::format("ballot {}", ballot)}, deadline_, [&] {
            pump();
            if (machine_.standing() == Standing::deciding && machine_.attempt() &&
                machine_.attempt()->ballot == ballot && any_gone(members) < 0)
              return;
            throw Error(Errc::peer_lost, "the members have changed", {.peer = any_gone(members)});
          });
      machine_.joined(ballot);
    } catch (const Error& error) {
      trouble_ = error.what();
      machine_.cannot_join(ballot);
    }
  }

  [[nodiscard]] int any_gone(const std::vector<int>& members) const {
    for (const int member : members)
      if (machine_.gone().contains(member)) return member;
    return -1;
  }

  Survivors finish() {
    const auto& [ballot, members] = machine_.decision();
    // Whoever has been asked must not wait for our answer after we have gone.
    flush();
    return {std::move(built_[ballot]), members.list()};
  }

  [[nodiscard]] std::string stories(const std::vector<int>& ranks) const {
    std::vector<std::string> all;
    for (const int rank : ranks)
      all.push_back(fmt::format("rank {} is silent ({})", rank, line_.last_seen(rank)));
    return fmt::format("{}", fmt::join(all, ", "));
  }

  [[noreturn]] void throw_outnumbered() const {
    const auto silent = machine_.suspects().list();
    const auto here = size() - machine_.gone().count() - machine_.suspects().count();
    throw Error(
        Errc::minority,
        fmt::format("rank {}, shrink: {} of {} ranks cannot go on: {}. They may have gone "
                    "on without us, or come back; it takes more than half of the group, or "
                    "all who are not surely dead ({} are)",
                    transport_.rank(), here, size(), stories(silent), machine_.gone().count()),
        {.rank = transport_.rank(), .peer = silent.front(), .operation = "shrink"});
  }

  [[noreturn]] void throw_undecided() const {
    std::vector<int> absent;
    for (int peer = 0; peer < size(); ++peer)
      if (!machine_.has_come(peer) && !machine_.gone().contains(peer)) absent.push_back(peer);
    throw Error(Errc::timeout,
                fmt::format("rank {}, shrink: no agreement on who goes on{}{}", transport_.rank(),
                            absent.empty() ? "" : fmt::format(": {}", stories(absent)),
                            trouble_.empty() ? "" : fmt::format(" (last: {})", trouble_)),
                {.rank = transport_.rank(),
                 .peer = absent.empty() ? -1 : absent.front(),
                 .operation = "shrink"});
  }

  Transport& transport_;
  Hotline& line_;
  Shrink how_;
  Membership machine_;
  std::vector<std::deque<std::vector<std::byte>>> outbox_;  // by peer
  std::vector<Clock::time_point> heard_;
  std::vector<std::byte> room_;
  std::map<Ballot, std::unique_ptr<Transport>> built_;
  Deadline deadline_, next_retry_;
  std::string trouble_;  // with the last attempt
};

}  // namespace

Survivors shrink(Transport& transport, const Shrink& how) {
  Hotline* const line = transport.hotline();
  if (line == nullptr)
    throw Error(Errc::unsupported,
                fmt::format("ranks over {} cannot agree on who goes on", transport.name()),
                {.rank = transport.rank(), .operation = "shrink"});
  if (encode({.gone = RankSet(transport.size()), .members = RankSet(transport.size())}).size() >
      line->longest())
    throw Error(Errc::unsupported,
                fmt::format("a group of {} is too large to shrink", transport.size()),
                {.rank = transport.rank(), .operation = "shrink"});
  return Decision(transport, how).run();
}

}  // namespace sinew
