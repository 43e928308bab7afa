// Running GOAL in virtual time: events in order of time, because dependences are any graph.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <queue>
#include <tuple>

#include <sinew/error.hpp>
#include "model/goal_program.hpp"

namespace sinew {
namespace {

using Time = Picoseconds;

class GoalMachine {
 public:
  GoalMachine(const GoalProgram& program, const Network& network)
      : program_(program), network_(network), ranks_(program.ranks.size()) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& ops = program.ranks[rank];
      auto& state = ranks_[rank];
      state.ops.resize(ops.size());
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        for (const auto before : ops[i].after_end) state.ops[before].at_end.push_back(i);
        for (const auto before : ops[i].after_start) state.ops[before].at_start.push_back(i);
        state.ops[i].open = ops[i].after_end.size() + ops[i].after_start.size();
      }
    }
  }

  GoalOutcome run() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      for (std::uint32_t i = 0; i < ranks_[rank].ops.size(); ++i)
        if (ranks_[rank].ops[i].open == 0) push(0, rank, i);
    while (!events_.empty()) {
      const auto [when, order, rank, op] = events_.top();
      events_.pop();
      begin(when, rank, op);
    }
    return finish();
  }

 private:
  struct OpState {
    std::vector<std::uint32_t> at_end, at_start;  // who waits for this one
    std::size_t open = 0;                         // that it waits for
    Time ready = 0;
    bool done = false;
  };
  struct RankState {
    std::vector<OpState> ops;
    Time out = 0, in = 0, cpu = 0;  // free from then on
    Time computed = 0, end = 0;
    double sent = 0;
  };
  struct Waiting {  // one end of a message
    Time ready;
    std::uint32_t op;
  };
  struct Channel {
    std::deque<Waiting> sends, recvs;
  };
  using Event = std::tuple<Time, std::uint64_t, std::size_t, std::uint32_t>;

  void push(Time when, std::size_t rank, std::uint32_t op) {
    events_.emplace(when, order_++, rank, op);
  }

  void release(std::size_t rank, const std::vector<std::uint32_t>& waiting, Time when) {
    for (const auto op : waiting) {
      auto& state = ranks_[rank].ops[op];
      state.ready = std::max(state.ready, when);
      if (--state.open == 0) push(state.ready, rank, op);
    }
  }
  void started(std::size_t rank, std::uint32_t op, Time when) {
    release(rank, ranks_[rank].ops[op].at_start, when);
  }
  void ended(std::size_t rank, std::uint32_t op, Time when) {
    auto& state = ranks_[rank].ops[op];
    state.done = true;
    ranks_[rank].end = std::max(ranks_[rank].end, when);
    release(rank, state.at_end, when);
  }

  void begin(Time when, std::size_t rank, std::uint32_t op) {
    const auto& what = program_.ranks[rank][op];
    if (what.kind == GoalOp::Kind::calc) {
      auto& state = ranks_[rank];
      const auto start = std::max(when, state.cpu);
      const auto takes = static_cast<Time>(std::llround(what.calc_ns * 1e3));
      if (takes > 0) state.cpu = start + takes;
      state.computed += takes;
      started(rank, op, start);
      ended(rank, op, takes > 0 ? start + takes : when);
      return;
    }
    const bool sends = what.kind == GoalOp::Kind::send;
    const auto peer = static_cast<std::size_t>(what.peer);
    auto& channel = channels_[{sends ? rank : peer, sends ? peer : rank, what.tag}];
    started(rank, op, when);
    (sends ? channel.sends : channel.recvs).push_back({when, op});
    if (sends && what.bytes <= network_.eager_bytes) {
      // It leaves without its receiver; what it needs there is known when that has come.
      auto& state = ranks_[rank];
      const auto start = std::max(when, state.out);
      const auto cost = network_.one_way.at(what.bytes);
      state.out = start + cost.alpha + cost.beta;
      channel.sends.back().ready = start;
      account(rank, what.bytes);
      ended(rank, op, state.out);
    }
    match(sends ? rank : peer, sends ? peer : rank, channel);
  }

  void account(std::size_t rank, double bytes) {
    ranks_[rank].sent += bytes;
    outcome_.bytes += bytes;
    outcome_.messages += 1;
  }

  void match(std::size_t from, std::size_t to, Channel& channel) {
    while (!channel.sends.empty() && !channel.recvs.empty()) {
      const auto send = channel.sends.front(), recv = channel.recvs.front();
      channel.sends.pop_front();
      channel.recvs.pop_front();
      const double bytes = program_.ranks[from][send.op].bytes;
      const auto cost = network_.one_way.at(bytes);
      const auto takes = cost.alpha + cost.beta;
      auto& receiver = ranks_[to];
      if (ranks_[from].ops[send.op].done) {  // eager
        receiver.in = std::max(send.ready, receiver.in) + takes;
        ended(to, recv.op, std::max(receiver.in, recv.ready));
        continue;
      }
      auto& sender = ranks_[from];
      const auto start = std::max({send.ready, recv.ready, sender.out, receiver.in});
      sender.out = receiver.in = start + takes;
      account(from, bytes);
      ended(from, send.op, start + takes);
      ended(to, recv.op, start + takes);
    }
  }

  GoalOutcome finish() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& state = ranks_[rank];
      for (std::size_t op = 0; op < state.ops.size(); ++op)
        if (!state.ops[op].done) refuse(rank, op);
      if (static_cast<double>(state.end) > outcome_.end_ps) {
        outcome_.end_ps = static_cast<double>(state.end);
        outcome_.last_rank = static_cast<int>(rank);
      }
      outcome_.busiest_bytes = std::max(outcome_.busiest_bytes, state.sent);
      outcome_.busiest_calc_ps =
          std::max(outcome_.busiest_calc_ps, static_cast<double>(state.computed));
    }
    return outcome_;
  }

  [[noreturn]] void refuse(std::size_t rank, std::size_t op) const {
    const auto& what = program_.ranks[rank][op];
    throw Error(
        Errc::not_verified,
        what.kind == GoalOp::Kind::calc
            ? fmt::format("rank {}, operation {} (calc) never begins: what it requires never ends",
                          rank, op)
            : fmt::format("rank {}, operation {} ({} rank {}, tag {}) never ends: nobody is there "
                          "for it, or ranks wait for each other in a circle",
                          rank, op, what.kind == GoalOp::Kind::send ? "send to" : "recv from",
                          what.peer, what.tag));
  }

  const GoalProgram& program_;
  const Network& network_;
  std::vector<RankState> ranks_;
  std::map<std::tuple<std::size_t, std::size_t, int>, Channel> channels_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  GoalOutcome outcome_;
};

}  // namespace

GoalOutcome simulate_goal(const GoalProgram& program, const Network& network) {
  return GoalMachine(program, network).run();
}

}  // namespace sinew
