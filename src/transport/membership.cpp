#include "transport/membership.hpp"

#include <algorithm>

#include "transport/wire/bytes.hpp"

namespace sinew {
namespace {

// kind 1 | ballot 8 | accepted 8 | gone | members, a bit a rank
constexpr std::size_t kFixed = 17;

std::size_t set_bytes(const RankSet& set) { return set.words().size() * sizeof(std::uint64_t); }

void put_set(std::byte* at, const RankSet& set) {
  for (const auto word : set.words()) {
    wire::put(at, word);
    at += sizeof word;
  }
}

bool get_set(const std::byte* at, RankSet& set, int size) {
  for (auto& word : set.words()) {
    word = wire::get<std::uint64_t>(at);
    at += sizeof word;
  }
  return set.is_within(RankSet::all(size));
}

}  // namespace

std::vector<std::byte> encode(const Notice& notice) {
  std::vector<std::byte> bytes(kFixed + set_bytes(notice.gone) + set_bytes(notice.members));
  wire::put(bytes.data(), static_cast<std::uint8_t>(notice.kind));
  wire::put(bytes.data() + 1, notice.ballot);
  wire::put(bytes.data() + 9, notice.accepted);
  put_set(bytes.data() + kFixed, notice.gone);
  put_set(bytes.data() + kFixed + set_bytes(notice.gone), notice.members);
  return bytes;
}

std::optional<Notice> decode_notice(std::span<const std::byte> bytes, int size) {
  Notice notice;
  notice.gone = notice.members = RankSet(size);
  const auto each = set_bytes(notice.gone);
  if (bytes.size() != kFixed + 2 * each) return {};
  const auto kind = wire::get<std::uint8_t>(bytes.data());
  if (kind >= kNoticeKinds) return {};
  notice.kind = static_cast<Notice::Kind>(kind);
  notice.ballot = wire::get<std::uint64_t>(bytes.data() + 1);
  notice.accepted = wire::get<std::uint64_t>(bytes.data() + 9);
  if (!get_set(bytes.data() + kFixed, notice.gone, size) ||
      !get_set(bytes.data() + kFixed + each, notice.members, size))
    return {};
  return notice;
}

bool may_go_on(const RankSet& members, const RankSet& gone, int size) {
  const int here = members.count(), dead = gone.without(members).count();
  if (here == 0) return false;
  return here + dead == size || 2 * here > size || (2 * here == size && dead > 0);
}

Membership::Membership(int rank, int size, Rule rule)
    : rank_(rank),
      size_(size),
      rule_(rule),
      all_(RankSet::all(size)),
      gone_(size),
      suspects_(size),
      came_(size),
      asked_(size),
      asked_without_(size),
      answered_(size),
      members_(size) {
  accepted_.members = best_.members = RankSet(size);
  came_.insert(rank);
  tell_all({.kind = Notice::Kind::here});
  lead();
}

// What a rank says to itself takes effect at once.
void Membership::say(int to, Notice notice) {
  if (notice.gone.words().empty()) notice.gone = RankSet(size_);
  if (notice.members.words().empty()) notice.members = RankSet(size_);
  if (to == rank_)
    hear(to, notice);
  else if (!gone_.contains(to))
    letters_.push_back({to, std::move(notice)});
}

void Membership::tell_all(const Notice& notice) {
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) say(peer, notice);
}

void Membership::hear(int from, const Notice& notice) {
  if (decision_ || expelled_ || gone_.contains(from)) return;
  came_.insert(from);
  suspects_.erase(from);
  switch (notice.kind) {
    case Notice::Kind::here:
      break;
    case Notice::Kind::ask:
      take_question(from, notice);
      break;
    case Notice::Kind::promise:
      take_promise(from, notice);
      break;
    case Notice::Kind::refuse:
      if (phase_ != Phase::idle && notice.ballot >= ballot_) step_back();
      seen_ = std::max(seen_, notice.ballot);
      break;
    case Notice::Kind::propose:
      if (notice.ballot == promised_ && notice.members.contains(rank_))
        attempt_ = Attempt{notice.ballot, notice.members};
      break;
    case Notice::Kind::joined:
      if (phase_ != Phase::joining || notice.ballot != ballot_) break;
      answered_.insert(from);
      if (answered_ == members_) conclude(ballot_);
      break;
  }
  lead();
}

// Promises only once it has seen the deaths itself: then nothing that the dead said is on its way.
void Membership::take_question(int from, const Notice& notice) {
  if (notice.ballot < promised_)
    say(from, {.kind = Notice::Kind::refuse, .ballot = promised_});
  else if (notice.gone.is_within(gone_))
    promise(notice.ballot);
  else if (!question_ || question_->ballot < notice.ballot)
    question_ = Question{notice.ballot, notice.gone};
}

void Membership::answer() {
  if (!question_ || !question_->gone.is_within(gone_)) return;
  const auto ballot = question_->ballot;
  question_.reset();
  promise(ballot);
}

void Membership::promise(Ballot ballot) {
  if (ballot <= promised_) return;
  promised_ = ballot;
  attempt_.reset();
  if (phase_ != Phase::idle && ballot_ < ballot) step_back();
  say(proposer(ballot), {.kind = Notice::Kind::promise,
                         .ballot = ballot,
                         .accepted = accepted_.ballot,
                         .members = accepted_.members});
}

void Membership::take_promise(int from, const Notice& notice) {
  if (phase_ != Phase::asking || notice.ballot != ballot_) return;
  answered_.insert(from);
  if (notice.accepted > best_.ballot) best_ = {notice.accepted, notice.members};
}

void Membership::lose(int peer) {
  if (decision_ || gone_.contains(peer)) return;
  gone_.insert(peer);
  suspects_.erase(peer);
  answer();
  lead();
}

void Membership::suspect(int peer) {
  if (decision_ || gone_.contains(peer) || peer == rank_) return;
  suspects_.insert(peer);
  lead();
}

void Membership::retry() {
  if (decision_ || expelled_) return;
  waits_ = false;
  tell_all({.kind = Notice::Kind::here});
  lead();
}

void Membership::joined(Ballot ballot) {
  if (!attempt_ || attempt_->ballot != ballot) return;
  accepted_ = *attempt_;
  joined_[ballot] = attempt_->members;
  attempt_.reset();
  say(proposer(ballot), {.kind = Notice::Kind::joined, .ballot = ballot});
}

void Membership::cannot_join(Ballot ballot) {
  if (!attempt_ || attempt_->ballot != ballot) return;
  attempt_.reset();
  say(proposer(ballot), {.kind = Notice::Kind::refuse, .ballot = ballot});
}

void Membership::conclude(Ballot ballot) {
  if (decision_ || expelled_) return;
  attempt_.reset();
  concluded_ = ballot;
  if (const auto at = joined_.find(ballot); at != joined_.end())
    decision_ = Attempt{ballot, at->second};
  else
    expelled_ = true;
}

// Whoever is the lowest of those who seem to be there leads, once all of them have come.
void Membership::lead() {
  if (decision_ || expelled_) return;
  const auto hopefuls = this->hopefuls();
  const bool leads = hopefuls.list().front() == rank_;
  const bool stale = phase_ == Phase::asking    ? asked_ != hopefuls || asked_without_ != gone_
                     : phase_ == Phase::joining ? !members_.is_within(hopefuls)
                                                : false;
  if (phase_ != Phase::idle && (!leads || stale)) phase_ = Phase::idle;
  if (!leads || waits_) return;
  if (phase_ == Phase::idle && hopefuls.is_within(came_) && rule_(hopefuls, gone_, size_)) ask();
  if (phase_ == Phase::asking && answered_ == asked_) propose();
}

void Membership::ask() {
  const auto next = round(std::max({promised_, ballot_, seen_})) + 1;
  ballot_ = next * static_cast<Ballot>(size_) + static_cast<Ballot>(rank_) + 1;
  phase_ = Phase::asking;
  asked_ = hopefuls();
  asked_without_ = gone_;
  answered_ = RankSet(size_);
  best_ = {0, RankSet(size_)};
  const Notice question{.kind = Notice::Kind::ask, .ballot = ballot_, .gone = gone_};
  for (const int peer : asked_.list())
    if (peer != rank_) say(peer, question);
  say(rank_, question);
}

// Where everybody is asked or surely dead, nobody can have concluded what some have joined before.
// Where somebody is silent, he may have; then it is that or nothing.
void Membership::propose() {
  members_ = asked_;
  if (best_.ballot != 0 && asked_.count() + gone_.count() < size_) members_ = best_.members;
  if (!members_.is_within(asked_)) return step_back();
  phase_ = Phase::joining;
  answered_ = RankSet(size_);
  const Notice proposal{
      .kind = Notice::Kind::propose, .ballot = ballot_, .gone = gone_, .members = members_};
  for (const int peer : asked_.list())
    if (peer != rank_) say(peer, proposal);
  say(rank_, proposal);
}

void Membership::step_back() {
  phase_ = Phase::idle;
  waits_ = true;
}

Membership::Standing Membership::standing() const {
  if (decision_) return Standing::member;
  if (expelled_) return Standing::expelled;
  if (!suspects_.empty() && !rule_(hopefuls(), gone_, size_)) return Standing::outnumbered;
  return Standing::deciding;
}

void Membership::append_to(std::vector<std::uint64_t>& state) const {
  const auto add = [&](const RankSet& set) {
    state.insert(state.end(), set.words().begin(), set.words().end());
  };
  for (const auto* set :
       {&gone_, &suspects_, &came_, &asked_, &asked_without_, &answered_, &members_})
    add(*set);
  state.insert(state.end(), {promised_, seen_, accepted_.ballot, ballot_, best_.ballot,
                             static_cast<std::uint64_t>(phase_), waits_ ? 1U : 0U,
                             expelled_ ? 1U : 0U, question_ ? question_->ballot : 0,
                             attempt_ ? attempt_->ballot : 0, decision_ ? decision_->ballot : 0});
  add(accepted_.members);
  add(best_.members);
  if (question_) add(question_->gone);
  if (attempt_) add(attempt_->members);
  for (const auto& [ballot, members] : joined_) {
    state.push_back(ballot);
    add(members);
  }
}

}  // namespace sinew
