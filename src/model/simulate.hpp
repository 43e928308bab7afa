// How long a collective takes on a network: the schedules that would run, executed in virtual time.
//
// A rank has one port out and one port in, which work at the same time and serve messages one after
// another, each for alpha + bytes * beta. A message starts when its sender and its receiver have
// come to it and both ports are free. Up to `eager_bytes` it does not wait for its receiver: it
// leaves when the sender can, and the receiver's port takes it when it is free. Rounds and channels
// mean what they mean in a schedule. What was received is combined after its last byte, one message
// at a time. Chunks are equally large.
//
// Where the topology has links that several messages pass, those share them by max-min fairness
// (flows.hpp); everything else is computed without a queue of events.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

#include <sinew/algorithms.hpp>
#include "model/network.hpp"
#include "model/symmetry.hpp"

namespace sinew {

/// A point in time, and what the longest chain of events that led to it consisted of. What is left
/// when the parts are taken away is waiting: for ranks that came late, and for links that others
/// use.
struct Moment {
  Picoseconds at = 0;
  Picoseconds alpha = 0;
  Picoseconds beta = 0;
  Picoseconds gamma = 0;  // combining and copying
  // Of two chains of equal length the same one is taken, in whatever order they are found.
  friend auto operator<=>(const Moment&, const Moment&) = default;  // NOLINT(modernize-use-nullptr)
};

/// What is simulated: every rank's schedule, made when it is needed.
struct Workload {
  int size = 1;
  double bytes = 0;  // of the larger user buffer
  bool in_place = true;
  Symmetry symmetry = Symmetry::none;  // where not none, rank 0 may stand for all
  std::function<Schedule(int rank)> schedule{};
};
/// Whether calls have one buffer for what goes in and what comes out: so they do in this library's
/// measurements, where that is possible.
bool is_in_place(Collective collective) noexcept;
/// `place.rank` is ignored; `place.node_of` must outlive the workload.
Workload workload_of(const Algorithm& algorithm, const Place& place, double bytes);

/// Something that took time: a message, or work of one rank.
struct Activity {
  std::int32_t rank = 0;   // who sends or works
  std::int32_t peer = -1;  // to whom; for work that waited: for whom
  Op op{};                 // send for messages
  std::uint32_t round = 0;
  double bytes = 0;
  Picoseconds begin = 0;
  Picoseconds sent = 0;  // the sender's port is free again
  Picoseconds end = 0;   // its receiver has it
  Cost cost{};           // without others
  bool eager = false;    // it left whether or not its receiver had come
};

struct SimulateOptions {
  bool collapse = true;            // use symmetry where there is one
  std::uint64_t shuffle_seed = 0;  // visit ranks in another order; must not change anything
  std::vector<Activity>* record = nullptr;  // everything that happens; needs collapse off
};

struct Simulated {
  Moment end{};                    // when the last rank is done
  std::uint64_t messages = 0;      // of all ranks
  double bytes_sent = 0;           // by all ranks,
  double bytes_received = 0;       //
  double busiest_bytes = 0;        // and by the one that sends most
  double shared_bytes = 0;         // read out of others' shared memory by the one that reads most
  double idle = 0;                 // mean share of the time in which a rank has nothing to do
  bool used_exchange = false;      // some message went by Network::exchange,
  bool used_eager = false;         // or did not wait for its receiver
  std::uint32_t passes = 1;        // through the slots of the board
  std::uint64_t flows = 0;         // messages over links that they might share
  std::vector<bool> used_links{};  // of the topology, by kind
};

/// Throws Error{not_verified} when ranks wait for each other in a circle, naming one of them, and
/// Error{unsupported} when a schedule needs shared memory that the network does not have.
Simulated simulate(const Workload& workload, const Network& network,
                   const SimulateOptions& options = {});

}  // namespace sinew
