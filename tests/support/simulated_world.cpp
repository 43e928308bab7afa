#include "support/simulated_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernel/reduce.hpp"
#include "transport/hotline.hpp"

namespace sinew::test {

using namespace std::chrono_literals;

namespace {

struct Word {
  enum class Kind : std::uint8_t { poison, notice, concluded, end };
  SimTime arrives{};
  Kind kind{};
  Failure failure{};
  std::vector<std::byte> bytes{};
  std::uint64_t ballot = 0;
};

}  // namespace

// The ranks of one transport, and everything between them.
struct SimulatedWorld::Group {
  std::vector<int> members;  // by their numbers in the world
  std::set<int> joined;
  std::map<std::tuple<int, int, int>, std::deque<Message>> lanes;  // from, to, channel
  std::map<std::pair<int, int>, std::deque<Word>> words;           // from, to
  std::set<int> left;
};

namespace {

using Group = SimulatedWorld::Group;

class SimTransport final : public Transport, private Hotline {
 public:
  SimTransport(SimulatedWorld& world, std::shared_ptr<Group> group, std::string name, int rank)
      : world_(world),
        group_(std::move(group)),
        label_(std::move(name)),
        rank_(rank),
        gone_(group_->members.size()),
        notices_(group_->members.size()) {}
  ~SimTransport() override { end(); }

  // Its last word, behind all it has said; also when it crashes.
  void end() {
    if (!group_->left.insert(rank_).second) return;
    for (int peer = 0; peer < size(); ++peer) say(peer, {.kind = Word::Kind::end});
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "simulated"; }
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override {
    return static_cast<int>(group_->members.size());
  }
  [[nodiscard]] Capabilities capabilities() const noexcept override { return {}; }
  [[nodiscard]] Clock::time_point now() const noexcept override {
    return Clock::time_point(world_.clock_of(in_world(rank_)));
  }
  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override {
    auto& lane = group_->lanes[{rank_, transfer.peer, transfer.channel}];
    lane.push_back({in_order(lane, transfer.peer), transfer.tag, {data.begin(), data.end()}});
    transfer.moved = data.size();
    return Progress::done;
  }
  Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept override {
    return receive(transfer, data, [&](const std::vector<std::byte>& from) {
      std::copy(from.begin(), from.end(), data.begin());
    });
  }
  Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                       const Reducer& reducer) noexcept override {
    return receive(transfer, data, [&](const std::vector<std::byte>& from) {
      reducer.pair(data.data(), from.data(), data.size() / reducer.element_bytes);
    });
  }
  void enter(OpTag, const OpDescriptor&) noexcept override {}
  Progress park(bool moved, Deadline) noexcept override {
    idle_ = moved ? 0 : std::min(idle_ + 1, 10);
    world_.rest(in_world(rank_), 5us * (1 << idle_));
    listen();
    for (int peer = 0; peer < size(); ++peer)
      if (gone_[at(peer)] && !failure_)
        poison({Errc::peer_lost, peer, fmt::format("rank {} is gone", peer)});
    return failure_ ? Progress::failed : Progress::pending;
  }
  Progress mismatched(int peer) noexcept override {
    poison({Errc::mismatch, peer, "different operations"});
    return Progress::failed;
  }
  [[nodiscard]] Failure failure() const override {
    return concluded_ != 0 ? given_up(rank_) : failure_.value_or(Failure{});
  }
  [[nodiscard]] std::string who_is_late() const override { return "somebody"; }
  void poison(const Failure& failure) noexcept override {
    if (failure_) return;
    failure_ = failure;
    for (int peer = 0; peer < size(); ++peer)
      say(peer, {.kind = Word::Kind::poison, .failure = failure});
  }
  std::unique_ptr<Transport> subset(std::span<const int>, std::string_view, Deadline) override {
    throw Error(Errc::unsupported, "no subsets here");
  }
  Hotline* hotline() noexcept override { return this; }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  [[nodiscard]] int in_world(int rank) const { return group_->members[at(rank)]; }
  template <class Queue>
  SimTime in_order(const Queue& queue, int peer) {
    const auto arrives = world_.arrival(in_world(rank_), in_world(peer));
    return queue.empty() ? arrives : std::max(arrives, queue.back().arrives);
  }
  void say(int peer, Word word) {
    if (peer == rank_) return;
    auto& words = group_->words[{rank_, peer}];
    word.arrives = in_order(words, peer);
    words.push_back(std::move(word));
  }
  template <class Consume>
  Progress receive(Transfer& transfer, std::span<std::byte> data, Consume consume) noexcept {
    auto& lane = group_->lanes[{transfer.peer, rank_, transfer.channel}];
    if (lane.empty() || lane.front().arrives > world_.now()) return Progress::pending;
    const auto& message = lane.front();
    if (message.tag.sequence != transfer.tag.sequence ||
        message.tag.fingerprint != transfer.tag.fingerprint || message.bytes.size() != data.size())
      return mismatched(transfer.peer);
    auto bytes = message.bytes;
    if (!bytes.empty() && world_.changes_a_bit()) bytes[0] ^= std::byte{2};
    consume(bytes);
    lane.pop_front();
    transfer.moved = data.size();
    return Progress::done;
  }

  void listen() noexcept {
    for (int peer = 0; peer < size(); ++peer)
      for (auto& words = group_->words[{peer, rank_}];
           !words.empty() && words.front().arrives <= world_.now(); words.pop_front())
        take(peer, words.front());
  }
  void take(int peer, const Word& word) {
    switch (word.kind) {
      case Word::Kind::poison:
        poison(word.failure);
        break;
      case Word::Kind::notice:
        notices_[at(peer)].push_back(word.bytes);
        break;
      case Word::Kind::concluded:
        conclude(word.ballot);
        break;
      case Word::Kind::end:
        gone_[at(peer)] = true;
        break;
    }
  }

  // The hotline.
  [[nodiscard]] std::size_t longest() const noexcept override { return 1024; }
  bool tell(int peer, std::span<const std::byte> message) noexcept override {
    say(peer, {.kind = Word::Kind::notice, .bytes = {message.begin(), message.end()}});
    return true;
  }
  std::size_t hear(int peer, std::span<std::byte> message) noexcept override {
    auto& notices = notices_[at(peer)];
    if (notices.empty()) return 0;
    const auto bytes = notices.front().size();
    std::copy(notices.front().begin(), notices.front().end(), message.begin());
    notices.pop_front();
    return bytes;
  }
  bool is_gone(int peer) noexcept override {
    listen();
    if (world_.silence_is_death() && world_.is_silent(in_world(peer), in_world(rank_)))
      gone_[at(peer)] = true;
    return gone_[at(peer)];
  }
  [[nodiscard]] std::string last_seen(int) const override { return "simulated"; }
  void conclude(std::uint64_t ballot) noexcept override {
    if (concluded_ != 0) return;
    concluded_ = ballot;
    for (int peer = 0; peer < size(); ++peer)
      say(peer, {.kind = Word::Kind::concluded, .ballot = ballot});
  }
  std::uint64_t concluded() noexcept override { return concluded_; }
  void rest() noexcept override { world_.rest(in_world(rank_), 1ms); }
  std::unique_ptr<Transport> regroup(const Regroup& whom, Deadline deadline,
                                     const Check& check) override {
    const auto key = fmt::format("{}/{}/{}", label_, whom.epoch, whom.label);
    auto& group = world_.groups()[key];
    if (!group) group = std::make_shared<Group>();
    if (group->members.empty())
      for (const int member : whom.members) group->members.push_back(in_world(member));
    const auto mine = std::find(whom.members.begin(), whom.members.end(), rank_);
    group->joined.insert(static_cast<int>(mine - whom.members.begin()));
    const auto joining = group;
    while (joining->joined.size() < whom.members.size()) {
      check();
      if (now() > deadline) throw Error(Errc::timeout, "not all have joined");
      rest();
    }
    return std::make_unique<SimTransport>(world_, joining, key,
                                          static_cast<int>(mine - whom.members.begin()));
  }

  SimulatedWorld& world_;
  std::shared_ptr<Group> group_;
  std::string label_;
  int rank_;
  int idle_ = 0;
  std::optional<Failure> failure_;
  std::vector<bool> gone_;
  std::vector<std::deque<std::vector<std::byte>>> notices_;
  std::uint64_t concluded_ = 0;
};

}  // namespace

SimulatedWorld::SimulatedWorld(Fate fate, std::uint64_t seed)
    : fate_(std::move(fate)),
      random_(seed),
      crashed_(static_cast<std::size_t>(fate_.size)),
      wakes_(crashed_.size()) {}

// Whoever crashed keeps its stack, as a dead process does until somebody cleans up: nobody does.
SimulatedWorld::~SimulatedWorld() {
  static auto& graveyard = *new std::vector<std::unique_ptr<Fiber>>;  // to the very end
  for (auto& fiber : fibers_)
    if (!fiber->has_ended()) graveyard.push_back(std::move(fiber));
}

SimTime SimulatedWorld::clock_of(int rank) const {
  const auto jump = fate_.jumps.find(rank);
  const bool jumped = jump != fate_.jumps.end() && now_ >= jump->second.first;
  return now_ + 1h + (jumped ? jump->second.second : SimTime{0});
}

SimTime SimulatedWorld::arrival(int from, int to) {
  auto arrives = now_ + 5us + fate_.longest_delay * static_cast<int>(random_() % 1000) / 1000;
  for (const auto& cut : fate_.cuts)
    if (cut.side[static_cast<std::size_t>(from)] != cut.side[static_cast<std::size_t>(to)] &&
        arrives >= cut.from && now_ < cut.until)
      arrives = std::max(arrives, cut.until + SimTime(random_() % 1'000'000));
  return arrives;
}

bool SimulatedWorld::is_silent(int from, int to) const {
  for (const auto& pause : fate_.pauses)
    if (pause.rank == from && now_ >= pause.from && now_ < pause.until) return true;
  for (const auto& cut : fate_.cuts)
    if (cut.side[static_cast<std::size_t>(from)] != cut.side[static_cast<std::size_t>(to)] &&
        now_ >= cut.from && now_ < cut.until)
      return true;
  return false;
}

// Everybody hears of the end, after all it has said; of one who has not joined yet, nobody waits.
void SimulatedWorld::bury(Group& group, int rank) {
  const auto at = std::find(group.members.begin(), group.members.end(), rank);
  const auto from = static_cast<int>(at - group.members.begin());
  if (at == group.members.end() || !group.left.insert(from).second) return;
  for (int to = 0; to < static_cast<int>(group.members.size()); ++to) {
    auto& words = group.words[{from, to}];
    auto arrives = arrival(rank, group.members[static_cast<std::size_t>(to)]);
    if (!words.empty()) arrives = std::max(arrives, words.back().arrives);
    words.push_back({.arrives = arrives, .kind = Word::Kind::end});
  }
}

void SimulatedWorld::rest(int rank, SimTime about) {
  wakes_[static_cast<std::size_t>(rank)] =
      now_ + 1us + about * static_cast<int>(500 + random_() % 1000) / 1000;
  fibers_[static_cast<std::size_t>(rank)]->yield();
}

bool SimulatedWorld::run(const std::function<void(Communicator&)>& body, const Options& options,
                         SimTime limit) {
  auto all = groups_["all"] = std::make_shared<Group>();
  for (int rank = 0; rank < fate_.size; ++rank) all->members.push_back(rank);
  for (int rank = 0; rank < fate_.size; ++rank)
    fibers_.push_back(std::make_unique<Fiber>([this, rank, all, &body, &options] {
      Communicator communicator(std::make_unique<SimTransport>(*this, all, "all", rank), options);
      body(communicator);
    }));
  while (now_ < limit) {
    int next = -1;
    for (int rank = 0; rank < fate_.size; ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      if (crashed_[i] || fibers_[i]->has_ended()) continue;
      for (const auto& pause : fate_.pauses)
        if (pause.rank == rank && wakes_[i] >= pause.from && wakes_[i] < pause.until)
          wakes_[i] = pause.until;
      if (next < 0 || wakes_[i] < wakes_[static_cast<std::size_t>(next)]) next = rank;
    }
    if (next < 0) return true;
    now_ = std::max(now_, wakes_[static_cast<std::size_t>(next)]);
    const auto crash = fate_.crashes.find(next);
    if (crash != fate_.crashes.end() && now_ >= crash->second) {
      crashed_[static_cast<std::size_t>(next)] = true;
      for (auto& [key, group] : groups_) bury(*group, next);
      continue;
    }
    ++turns_;
    fibers_[static_cast<std::size_t>(next)]->resume();
  }
  return false;
}

}  // namespace sinew::test
