#include "schedule/crash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "schedule/form.hpp"

namespace sinew {
namespace {

using Lane = std::tuple<int, int, int>;  // source, destination, channel

// A step, and what of others it waits for.
struct Part {
  const Step* step;
  std::uint32_t ordinal = 0;  // of a send or receive, on its lane
  std::uint32_t end = 0;      // one past the last step of its round, in its stream
};

enum class Fate : std::uint8_t { running, finished, failed, dead };

// One rank: how far each stream is. The mask is of the round being run.
struct Progressed {
  Fate fate = Fate::running;
  bool news = false;  // on its way to this rank
  std::vector<std::uint16_t> next;
  std::vector<std::uint32_t> done;
};
using State = std::vector<Progressed>;

class Exploration {
 public:
  Exploration(const World& world, const CrashConditions& conditions)
      : world_(world), conditions_(conditions), size_(static_cast<int>(world.ranks.size())) {
    for (const auto& schedule : world.ranks) lay_out(schedule);
  }

  CrashVerdict run() {
    for (int rank = 0; rank < size_; ++rank)
      for (const auto& stream : streams_[at(rank)])
        for (std::size_t i = 0; i < stream.size(); ++i)
          if (stream[i].end - i > kWidest)
            return {0, 0, Fault{rank, stream[i].step->round, "a round too wide to be explored"}};
    State first(at(size_));
    for (int rank = 0; rank < size_; ++rank) {
      first[at(rank)].next.resize(streams_[at(rank)].size());
      first[at(rank)].done.resize(streams_[at(rank)].size());
      settle(first, rank);
    }
    visit(std::move(first));
    while (!open_.empty() && !verdict_.fault) {
      const auto state = std::move(open_.back());
      open_.pop_back();
      expand(state);
      if (seen_.size() > conditions_.most_states)
        verdict_.fault = Fault{-1, 0, "too many states to try them all"};
    }
    verdict_.states = seen_.size();
    return verdict_;
  }

 private:
  static constexpr std::size_t kWidest = 32;  // steps of a round
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  void lay_out(const Schedule& schedule) {
    std::map<int, std::vector<Part>> by_channel;
    for (const auto& step : schedule.steps) {
      Part part{&step};
      if (step.op == Op::send) part.ordinal = sends_[{schedule.rank, step.peer, step.channel}]++;
      if (is_receive(step)) part.ordinal = receives_[{step.peer, schedule.rank, step.channel}]++;
      by_channel[step.channel].push_back(part);
    }
    auto& streams = streams_.emplace_back();
    for (auto& [channel, parts] : by_channel) {
      for (auto i = parts.size(); i-- > 0;) {
        const bool last = i + 1 == parts.size() || parts[i + 1].step->round != parts[i].step->round;
        parts[i].end = last ? static_cast<std::uint32_t>(i + 1) : parts[i + 1].end;
      }
      streams.push_back(std::move(parts));
    }
  }

  static bool is_receive(const Step& step) {
    return step.op == Op::recv || step.op == Op::recv_reduce;
  }

  [[nodiscard]] bool is_done(const Progressed& rank, std::size_t stream, std::size_t step) const {
    return step < rank.next[stream] || (step < rank.next[stream] + kWidest &&
                                        (rank.done[stream] >> (step - rank.next[stream]) & 1) != 0);
  }

  // How many messages have been sent (or taken) on a lane, as its sender's (receiver's) steps say.
  [[nodiscard]] std::uint32_t moved(const State& state, const Lane& lane, bool sent) const {
    const auto& [from, to, channel] = lane;
    const int rank = sent ? from : to, peer = sent ? to : from;
    const auto& streams = streams_[at(rank)];
    std::uint32_t count = 0;
    for (std::size_t s = 0; s < streams.size(); ++s)
      for (std::size_t i = 0; i < streams[s].size(); ++i) {
        const Step& step = *streams[s][i].step;
        if (step.peer != peer || step.channel != channel ||
            (sent ? step.op != Op::send : !is_receive(step)))
          continue;
        const auto& progress = state[at(rank)];
        // Where sends wait for their receives, a send of the round being run is on offer.
        const bool offered = sent && conditions_.sends == Sends::synchronous &&
                             progress.next[s] < streams[s].size() &&
                             i < streams[s][progress.next[s]].end;
        count += is_done(progress, s, i) || offered ? 1 : 0;
      }
    return count;
  }

  // The rounds that a rank has completed in all its streams.
  [[nodiscard]] std::uint32_t completed(const State& state, int rank) const {
    std::uint32_t rounds = ~0U;
    const auto& streams = streams_[at(rank)];
    for (std::size_t s = 0; s < streams.size(); ++s)
      if (const auto next = state[at(rank)].next[s]; next < streams[s].size())
        rounds = std::min(rounds, streams[s][next].step->round);
    return rounds;
  }

  // -1: the step can be done; else the rank that it waits for.
  [[nodiscard]] int waits_for(const State& state, int rank, const Part& part) const {
    const Step& step = *part.step;
    if (step.op == Op::send)
      return conditions_.sends == Sends::buffered ||
                     moved(state, {rank, step.peer, step.channel}, false) > part.ordinal
                 ? -1
                 : step.peer;
    if (is_receive(step))
      return moved(state, {step.peer, rank, step.channel}, true) > part.ordinal ? -1 : step.peer;
    if (step.op != Op::gather_copy && step.op != Op::gather_reduce &&
        step.op != Op::gather_reduce_all)
      return -1;
    for (int member = 0; member < size_; ++member)
      if (member != rank && reads(rank, step, member) && completed(state, member) < step.round)
        return member;
    return -1;
  }

  [[nodiscard]] bool reads(int rank, const Step& step, int member) const {
    if (step.peer >= 0) return member == step.peer;
    if (step.group < 0) return true;
    const auto& group = world_.ranks[at(rank)].groups[at(step.group)];
    return std::find(group.begin(), group.end(), member) != group.end();
  }

  // Past rounds that are complete; finished where nothing is left.
  void settle(State& state, int rank) const {
    auto& progress = state[at(rank)];
    const auto& streams = streams_[at(rank)];
    bool all = true;
    for (std::size_t s = 0; s < streams.size(); ++s) {
      while (progress.next[s] < streams[s].size()) {
        const auto end = streams[s][progress.next[s]].end;
        const auto whole = (std::uint64_t{1} << (end - progress.next[s])) - 1;
        if (progress.done[s] != whole) break;
        progress.next[s] = static_cast<std::uint16_t>(end);
        progress.done[s] = 0;
      }
      all &= progress.next[s] == streams[s].size();
    }
    if (all && progress.fate == Fate::running) progress.fate = Fate::finished;
  }

  void expand(const State& state) {
    bool ended = true;
    for (int rank = 0; rank < size_; ++rank)
      if (state[at(rank)].fate == Fate::running) ended &= !expand_rank(state, rank);
    if (!ended) return;
    ++verdict_.endings;
    for (int rank = 0; rank < size_; ++rank)
      if (state[at(rank)].fate == Fate::running) return hangs(state, rank);
  }

  // False: nothing can happen to this rank.
  bool expand_rank(const State& state, int rank) {
    bool any = false, meets_death = false;
    const auto& progress = state[at(rank)];
    const auto& streams = streams_[at(rank)];
    State so_far = state;  // with every step that can be done, done
    for (std::size_t s = 0; s < streams.size(); ++s) {
      if (progress.next[s] == streams[s].size()) continue;
      for (std::size_t i = progress.next[s]; i < streams[s][progress.next[s]].end; ++i) {
        if (is_done(progress, s, i)) continue;
        const int missing = waits_for(state, rank, streams[s][i]);
        meets_death |= missing >= 0 && state[at(missing)].fate == Fate::dead;
        if (missing >= 0) continue;
        any = true;
        crash(so_far, rank);  // between this step and the one before it
        so_far[at(rank)].done[s] |= 1U << (i - progress.next[s]);
      }
    }
    if (!any) crash(state, rank);
    if (any) {
      settle(so_far, rank);
      visit(std::move(so_far));
    }
    if (meets_death || progress.news) {
      any = true;
      State told = state;
      fail(told, rank);
      visit(std::move(told));
    }
    return any;
  }

  // At most one rank dies.
  void crash(const State& state, int rank) {
    for (const auto& progress : state)
      if (progress.fate == Fate::dead) return;
    State after = state;
    settle(after, rank);
    after[at(rank)].fate = Fate::dead;
    visit(std::move(after));
  }

  void fail(State& state, int rank) const {
    state[at(rank)].fate = Fate::failed;
    for (int peer = 0; peer < size_ && conditions_.spreads_news; ++peer)
      if (state[at(peer)].fate == Fate::running) state[at(peer)].news = true;
  }

  void hangs(const State& state, int rank) {
    const auto& streams = streams_[at(rank)];
    for (std::size_t s = 0; s < streams.size(); ++s)
      for (auto i = std::size_t{state[at(rank)].next[s]}; i < streams[s].size(); ++i) {
        const int missing = waits_for(state, rank, streams[s][i]);
        if (missing < 0 || is_done(state[at(rank)], s, i)) continue;
        verdict_.fault =
            Fault{rank, streams[s][i].step->round,
                  fmt::format("waits for rank {} for ever after another rank's death", missing)};
        return;
      }
  }

  void visit(State state) {
    key_.clear();
    for (const auto& progress : state) {
      key_.push_back(static_cast<std::uint32_t>(progress.fate) * 2 + (progress.news ? 1 : 0));
      for (const auto next : progress.next) key_.push_back(next);
      key_.insert(key_.end(), progress.done.begin(), progress.done.end());
    }
    const auto hash = XXH3_128bits(key_.data(), key_.size() * sizeof(std::uint32_t));
    if (seen_.insert({hash.high64, hash.low64}).second) open_.push_back(std::move(state));
  }

  struct Low {
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& hash) const {
      return hash.second;
    }
  };

  const World& world_;
  CrashConditions conditions_;
  int size_;
  std::vector<std::vector<std::vector<Part>>> streams_;  // of each rank
  std::map<Lane, std::uint32_t> sends_, receives_;       // steps on each lane
  std::vector<State> open_;
  std::unordered_set<std::pair<std::uint64_t, std::uint64_t>, Low> seen_;
  std::vector<std::uint32_t> key_;
  CrashVerdict verdict_;
};

}  // namespace

CrashVerdict explore_crash(const World& world, const CrashConditions& conditions) {
  return Exploration(world, conditions).run();
}

}  // namespace sinew
