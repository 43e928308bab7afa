// Messages under way over links that they share. Rates are max-min fair: no message can go faster
// without another going slower that is no faster. When the messages of a link change, only those
// are computed again that depend on it.
#pragma once

#include <cstdint>
#include <queue>
#include <span>
#include <vector>

#include "model/curve.hpp"

namespace sinew {

class Flows {
 public:
  using Id = std::uint32_t;

  /// Bytes a picosecond that each link carries.
  explicit Flows(const std::vector<double>& capacities);

  /// `bytes` that would take `alone` picoseconds without others, from `begin` on, which is not
  /// before `now`. `links` has at least one, and none twice. The id is free again when it has
  /// ended.
  Id start(Picoseconds begin, double bytes, Picoseconds alone,
           std::span<const std::uint32_t> links);

  [[nodiscard]] Picoseconds now() const noexcept { return now_; }
  [[nodiscard]] std::uint64_t started() const noexcept { return started_; }

  /// Goes to the next moment at which something ends and says what, in no particular order; empty
  /// when nothing is under way. Call it when everything that starts `now` has been started: rates
  /// are only then computed.
  const std::vector<Id>& advance();

  /// Of a flow that has begun, in bytes a picosecond; for tests.
  [[nodiscard]] double rate(Id id) const noexcept { return flows_[id].share * flows_[id].own_rate; }

 private:
  enum class State : std::uint8_t { none, waits, moves };
  static constexpr std::size_t kPlaces = 16;  // of a flow, at most
  struct Flow {
    double work = 0;      // picoseconds that are left, alone
    double share = 0;     // of its own rate that it has,
    double next = 0;      // and will have, once all are computed
    double own_rate = 0;  // bytes a picosecond
    Picoseconds since = 0;
    Picoseconds end = 0;  // at the present share; of one that waits: when it begins
    std::uint32_t places = 0;
    std::uint32_t seen = 0;
    State state = State::none;
    bool frozen = false;
  };
  struct Place {  // of a flow on one link
    std::uint32_t link = 0;
    std::uint32_t at = 0;  // index into the link's users
  };
  struct User {
    Id flow;
    std::uint32_t place;  // which of its places this is
  };
  struct Line {  // a link
    double capacity = 0;
    std::vector<User> users{};
    double left = 0;  // while rates are computed
    std::uint32_t open = 0;
    std::uint32_t seen = 0;
    bool dirty = false;
  };
  struct Happening {
    Picoseconds at;
    Id flow;
    friend bool operator>(const Happening& a, const Happening& b) {
      return a.at != b.at ? a.at > b.at : a.flow > b.flow;
    }
  };
  struct Limit {
    double rate;
    std::uint32_t line;
    friend bool operator>(const Limit& a, const Limit& b) {
      return a.rate != b.rate ? a.rate > b.rate : a.line > b.line;
    }
  };

  [[nodiscard]] std::span<Place> places_of(Id id) noexcept {
    return {&places_[id * kPlaces], flows_[id].places};
  }
  void happen();
  void drop_stale();
  void enter(Id id);
  void leave(Id id);
  void touch(std::uint32_t line);
  void settle();
  void collect(std::uint32_t line);
  void solve();
  void freeze(Id id, double rate);
  void apply();

  std::vector<Flow> flows_;
  std::vector<Place> places_;
  std::vector<Line> lines_;
  std::vector<Id> spare_;
  std::vector<std::uint32_t> dirty_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> queue_;
  std::vector<Id> ended_;
  // Of the flows and links whose rates are being computed.
  std::vector<Id> some_flows_;
  std::vector<std::uint32_t> some_lines_;
  std::vector<Limit> limits_;
  std::uint32_t epoch_ = 0;
  Picoseconds now_ = 0;
  std::uint64_t started_ = 0;
};

}  // namespace sinew
