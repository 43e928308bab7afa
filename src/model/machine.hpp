// The ranks of a simulation and what each of them is waiting for. Who sends to whom and in which
// order is fixed by the schedules, so that time is computed by following dependences: a rank runs
// until it needs a message that is not there, and goes on when its peer has come. Messages over
// shared links go through `Flows`; only they need a clock, which goes on when no rank can move.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "model/flows.hpp"
#include "model/mailbox_table.hpp"
#include "model/program_pool.hpp"
#include "model/simulate.hpp"
#include "model/wiring.hpp"

namespace sinew {

inline Moment after(Moment moment, const Cost& cost) {
  moment.at += cost.alpha + cost.beta;
  moment.alpha += cost.alpha;
  moment.beta += cost.beta;
  return moment;
}

inline Moment worked(Moment moment, const Cost& cost) {
  moment.at += cost.alpha + cost.beta;
  moment.gamma += cost.alpha + cost.beta;
  return moment;
}

class Machine {
 public:
  /// `passes`: how often each schedule runs, over as many equal slices of the data.
  Machine(const Workload& workload, const Network& network, const SimulateOptions& options,
          std::uint32_t passes, std::uint32_t slices);
  Simulated run();

 private:
  /// One channel of one rank: where it is, and since when.
  struct Lane {
    Moment ready{};           // the rounds before are done
    Moment work{};            // what this round does alone, so far
    Moment done{};            // all of this round, so far
    std::uint32_t begin = 0;  // items of this round,
    std::uint32_t end = 0;
    std::uint32_t local = 0;  // the next of them that takes no message
    std::uint32_t open = 0;   // messages of it that are still to come
    std::uint32_t pass = 0;
    bool exchanges = false;  // sends and receives in this round
  };
  /// Progress of a port through the messages of its direction.
  struct Port {
    Item item{};         // the message it is at; kept here because the other end looks at it
    bool waits = false;  // for the other end
    bool moves = false;  // over links that others use, until the clock says it is through
    Moment free{};       // when the message before was through
    std::uint32_t at = 0;
    std::uint32_t pass = 0;
    Picoseconds busy = 0;
  };
  struct Awaited {  // when those that something waits for have come, and who came last
    Moment when{};
    std::int32_t last = -1;
  };
  struct Mark {  // a rank was past a round
    std::uint64_t position;
    Moment when;
  };
  struct Moving {  // a message over shared links
    std::int32_t from = 0, to = 0;
    Moment begin{};
    Cost cost{};
    bool eager = false;
  };
  /// With many ranks most of the time is spent on fetching these from memory: what every visit
  /// needs comes first and is in one piece.
  struct alignas(64) Rank {
    Port out{}, in{};  // a line of the cache each
    Lane first_lane{};
    const Program* program = nullptr;
    Moment combined{};  // the last of what it combined
    Picoseconds computing = 0;
    std::int32_t id = 0;
    bool started = false, queued = false;
    std::vector<Lane> more_lanes{};       // of schedules with several channels
    std::vector<Mark> marks{};            // of schedules with board steps
    std::vector<std::int32_t> waiters{};  // ranks that wait for a mark

    [[nodiscard]] Lane& lane(std::uint32_t channel) noexcept {
      return channel == 0 ? first_lane : more_lanes[channel - 1];
    }
    [[nodiscard]] const Lane& lane(std::uint32_t channel) const noexcept {
      return channel == 0 ? first_lane : more_lanes[channel - 1];
    }
    /// When the message that a port is at could go as far as this end is concerned.
    [[nodiscard]] Moment bound(const Port& port) const noexcept {
      return std::max(lane(port.item.channel).ready, port.free);
    }
  };

  [[nodiscard]] Rank& rank_at(std::int32_t rank) noexcept {
    return ranks_[collapsed_ ? 0 : static_cast<std::size_t>(rank)];
  }
  void start(std::int32_t id);
  void count(const Rank& rank);
  void queue(std::int32_t id);
  void drain();
  bool advance(std::int32_t id);
  bool advance_lane(std::int32_t id, Rank& rank, std::uint32_t channel);
  void enter_round(Rank& rank, std::uint32_t channel);
  void leave_round(Rank& rank, Lane& lane);
  Simulated finish();
  [[noreturn]] void refuse_circle() const;

  // What a rank does without messages: machine_alone.cpp.
  bool work_alone(std::int32_t id, Rank& rank, Lane& lane, const Item& item);
  bool wait_for(std::int32_t id, Rank& rank, const Item& item, std::uint64_t position,
                Awaited& others);
  bool passed(std::int32_t id, std::int32_t member, std::uint64_t position, Awaited& others);
  [[nodiscard]] Cost work_cost(std::int32_t id, const Curve& curve, double bytes,
                               std::uint64_t which) const;
  [[nodiscard]] std::size_t members(const Rank& rank, const Item& item) const;

  // Messages: machine_ports.cpp.
  bool advance_out(std::int32_t id, Rank& rank);
  bool advance_in(std::int32_t id, Rank& rank);
  void find_next(const Rank& rank, Port& port, bool sends) const;
  void transfer(std::int32_t from, std::int32_t to);
  void send_eagerly(std::int32_t from, std::int32_t to);
  void move(const Moving& moving, const Leg& leg, double bytes);
  void arrive(const Moving& moving, Picoseconds at);
  void deliver(std::int32_t from, std::int32_t to, const Letter& letter);
  void end_send(Rank& rank, Moment end, Picoseconds busy);
  void receive(std::int32_t id, Rank& rank, const Letter& letter);
  void end_receive(std::int32_t id, Rank& rank, const Moment& arrival, Moment end,
                   Picoseconds busy);
  [[nodiscard]] bool is_match(std::int32_t sender, const Item& send, std::int32_t receiver,
                              const Item& receive) const noexcept;
  [[nodiscard]] bool is_awaited(std::int32_t from, const Item& item, std::int32_t to);
  [[nodiscard]] std::int32_t mirror(std::int32_t peer) const noexcept;
  [[nodiscard]] Route route_of(std::int32_t from, const Item& item) const noexcept;
  [[nodiscard]] Leg leg_of(std::int32_t from, std::int32_t to, const Rank& sender);
  [[nodiscard]] double bytes_of(const Item& item) const noexcept { return item.chunks * chunk_; }
  void record(const Activity& activity) {
    if (options_.record != nullptr) options_.record->push_back(activity);
  }

  const Workload& workload_;
  const Network& network_;
  SimulateOptions options_;
  std::uint32_t passes_;
  Wiring wiring_;
  bool collapsed_;
  double slices_;
  double chunk_ = 0;  // bytes of a chunk in one pass
  ProgramPool programs_;
  std::vector<Rank> ranks_;
  std::vector<std::int32_t> ready_;  // ranks that may move,
  std::vector<std::int32_t> wave_;   // and those of them whose turn it is
  MailboxTable mail_;                // eager messages that nobody has asked for yet
  Flows flows_;
  std::vector<Moving> moving_;  // by id of the flow
  std::unique_ptr<std::mt19937_64> shuffle_;
  Simulated outcome_;
};

}  // namespace sinew
