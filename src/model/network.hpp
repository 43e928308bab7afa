// What moving and combining bytes costs on some machine: the numbers that a simulation runs on.
// Read from a model file or from a line of text (model/network_file.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <sinew/types.hpp>
#include "model/curve.hpp"
#include "model/topology.hpp"

namespace sinew {

/// Memory that ranks share: what `publish` and `gather` cost; and memory that they may read.
struct BoardCosts {
  double wait_ps = 0;     // until a rank notices that another has published
  double slot_bytes = 0;  // what fits a slot; longer data goes in passes. 0: any length fits
  Curve publish{};        // copying into the own slot
  Curve gather{};         // reading out of another's
  Curve pull{};           // reading another rank's own memory; free: not allowed, or not known
  friend bool operator==(const BoardCosts&, const BoardCosts&) = default;
};

/// How far measurements may lie from predictions: factors on the time.
struct ErrorBar {
  double low = 1;
  double high = 1;
  friend bool operator==(const ErrorBar&, const ErrorBar&) = default;
};

/// Where a model came from, in the words of whoever made it.
struct Provenance {
  std::string made_by{}, host{}, date{}, transport{};
  int ranks = 0;              // it was measured with; 0: not measured
  int cores = 0;              // those ranks had
  double load = 0;            // average of the machine meanwhile
  double noise = 0;           // p90 over p25 of the samples, the median of all sizes
  double left_out_error = 0;  // median error of points that a fit did not see
  double schedule_error = 0;  // median error of schedules, corrected by their other sizes only
  std::string where{};        // in its file, for complaints: "net.toml:40"; not compared
  friend bool operator==(const Provenance& a, const Provenance& b) {
    return std::tie(a.made_by, a.host, a.date, a.transport, a.ranks, a.cores, a.load, a.noise,
                    a.left_out_error, a.schedule_error) ==
           std::tie(b.made_by, b.host, b.date, b.transport, b.ranks, b.cores, b.load, b.noise,
                    b.left_out_error, b.schedule_error);
  }
};

/// How much times vary, as factors with mean 1 on every message and every piece of work. Drawn from
/// the seed: the same seed gives the same times, in whatever order they are asked for.
struct Noise {
  enum class Kind : std::uint8_t { normal, lognormal, exponential, pareto };
  Kind kind = Kind::lognormal;
  double deviation = 0;  // standard deviation of a factor; 0: everything takes its time exactly
  std::uint64_t seed = 1;
  friend bool operator==(const Noise&, const Noise&) = default;
};

/// Ranks that are slower than the others, drawn from a seed.
struct Stragglers {
  double share = 0;  // of all ranks
  double speed = 1;  // of their processors
  double delay_ps = 0;
  std::uint64_t seed = 1;
  friend bool operator==(const Stragglers&, const Stragglers&) = default;
};

/// What happens when ranks of a host outnumber its cores.
struct Cores {
  enum class Progress : std::uint8_t { yield, spin };
  int count = 0;  // of a host; 0: enough for all ranks
  Progress progress = Progress::yield;
  double switch_ps = 2.5e6;  // from one rank to the next, where waiting ranks yield
  double tick_ps = 4e9;      // of the scheduler, which takes the core from a rank that spins
  friend bool operator==(const Cores&, const Cores&) = default;
};

/// What an algorithm took as a whole, over what its parts add up to: model/correction.hpp.
struct Correction {
  struct Point {
    double bytes = 0;   // of the larger user buffer
    double factor = 1;  // on the time
    friend bool operator==(const Point&, const Point&) = default;
  };
  Collective collective{};
  std::string algorithm{};
  std::vector<Point> points{};  // by size, ascending
  friend bool operator==(const Correction&, const Correction&) = default;
};

struct Network {
  std::string name{};
  Curve one_way{};         // a message while its sender receives nothing
  Curve exchange{};        // a message while its sender receives one; free: as one_way
  double eager_bytes = 0;  // messages up to this size do not wait for their receiver
  double slice_bytes = 0;  // of a chunk that goes at once, where ranks send it on; 0: all of it
  Curve reduce{};          // combining what was received
  Curve copy{};            // copying on one rank
  double call_ps = 0;      // a call, before its first step
  std::optional<BoardCosts> board{};
  Topology topology{};
  Cores cores{};
  Noise noise{};
  Stragglers stragglers{};
  std::vector<Correction> corrections{};  // for as many ranks as it was measured with
  ErrorBar error{};                       // of what parts add up to
  ErrorBar corrected_error{};             // where that was corrected
  Provenance provenance{};
  friend bool operator==(const Network&, const Network&) = default;
};

}  // namespace sinew
