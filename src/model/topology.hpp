// How ranks are connected where not all pairs are alike: levels (node, rack, ...), links that
// several pairs share, single ranks that are slower, single pairs that go another way.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/curve.hpp"

namespace sinew {

/// Ranks as ranges "0..3,7", so that a million of them take no room.
class RankRanges {
 public:
  RankRanges() = default;
  /// Throws Error{invalid_argument}.
  static RankRanges parse(const std::string& text);
  [[nodiscard]] bool contains(int rank) const noexcept;
  [[nodiscard]] int first() const noexcept;  // the lowest rank
  [[nodiscard]] std::string text() const;
  friend bool operator==(const RankRanges&, const RankRanges&) = default;

 private:
  std::vector<std::pair<int, int>> ranges_;
};

/// A kind of link: what a message over it costs, and what one such link carries.
struct Link {
  std::string name{};
  Curve one_way{};
  Curve exchange{};            // free: as one_way
  double capacity_gbytes = 0;  // a second, all its messages together; 0: what one message gets
  bool shared = false;         // in paths: one link for all messages that pass it, each way
  /// Picoseconds a byte at full capacity.
  [[nodiscard]] double full_byte_ps() const noexcept;
  friend bool operator==(const Link&, const Link&) = default;
};

/// Who has to share the links of a level.
enum class Sharing : std::uint8_t {
  rank,    // nobody: each rank has its own
  member,  // the ranks of a member (of a node, say) share its links out and its links in
  level,   // all members share, as on a bus or a backbone
};

/// `size` members of the level below (ranks, for the first) make one of this level.
struct NetworkLevel {
  std::string name{};
  int size = 0;   // 0: any number, for the last level
  int link = -1;  // index into Topology::links: between members; -1: as Network::one_way
  Sharing sharing = Sharing::rank;
  int links = 1;  // of a member, or of the level: so many times the capacity
  friend bool operator==(const NetworkLevel&, const NetworkLevel&) = default;
};

/// What is particular about some ranks.
struct RankTraits {
  RankRanges ranks{};
  double speed = 1;         // of its processor: combining and copying
  double delay_ps = 0;      // it comes so much later
  double gbytes_per_s = 0;  // the most its ports carry; 0: no limit of its own
  friend bool operator==(const RankTraits&, const RankTraits&) = default;
};

/// Messages between these ranks pass these links, whatever the levels say.
struct Path {
  RankRanges from{}, to{};
  std::vector<int> links{};  // indices into Topology::links; alphas add up, the slowest rate holds
  bool both_ways = true;
  friend bool operator==(const Path&, const Path&) = default;
};

enum class RankOrder : std::uint8_t {
  blocked,      // ranks 0, 1, 2, ... fill the first node, then the next
  round_robin,  // rank 0 on the first node, rank 1 on the second, ...
};

struct Topology {
  std::vector<Link> links{};
  std::vector<NetworkLevel> levels{};  // innermost first
  std::vector<RankTraits> ranks{};
  std::vector<Path> paths{};
  RankOrder placement = RankOrder::blocked;
  std::string where{};  // of the levels in their file, for complaints: "net.toml:12"

  [[nodiscard]] bool empty() const noexcept {
    return levels.empty() && ranks.empty() && paths.empty();
  }
  /// Ranks that the levels hold; 0: any number.
  [[nodiscard]] std::int64_t room() const noexcept;
  /// Throws Error{invalid_argument} when there is not room for so many ranks.
  void check_covers(int size) const;
  /// The node of each rank, by the first level; empty where there is one node or no level.
  [[nodiscard]] std::vector<int> node_of(int size) const;
  friend bool operator==(const Topology& a, const Topology& b) {
    return a.links == b.links && a.levels == b.levels && a.ranks == b.ranks && a.paths == b.paths &&
           a.placement == b.placement;
  }
};

}  // namespace sinew
