// A schedule: one rank's part of a collective, as data. Chunk units only: no bytes, types,
// pointers or callbacks. The same object is executed, verified, predicted, drawn and exported.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sinew/types.hpp>

namespace sinew {

enum class Op : std::uint8_t {
  send,               // src -> peer
  recv,               // peer -> dst
  recv_reduce,        // dst = dst op what peer sends
  copy,               // src -> dst
  reduce,             // dst = dst op src
  publish,            // src -> my `board` chunks, for all of the group to see
  gather_copy,        // peer's `board` chunks -> dst; without a peer: wait for every member
  gather_reduce,      // dst = op over members in rank order; mine is src, theirs is `board`
  gather_reduce_all,  // the same over every member's shared src, written to every member's dst
};

enum class Buf : std::uint8_t { input, output, scratch, board };

std::string_view name(Op op) noexcept;
std::string_view name(Buf buf) noexcept;

/// A range of equal chunks of one buffer. count == 0 means "no such operand".
struct Chunks {
  Buf buf{};
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  friend bool operator==(const Chunks&, const Chunks&) = default;
};

/// Steps of one round of one channel progress together; rounds of a channel run in order;
/// channels are independent streams. A gather sees what members published in earlier rounds.
struct Step {
  Op op{};
  std::uint16_t channel = 0;
  std::uint32_t round = 0;
  std::int32_t peer = -1;   // the other rank; -1: none, or every member of the group
  std::int32_t group = -1;  // index into Schedule::groups; -1: all ranks
  Chunks src{}, dst{}, board{};
  friend bool operator==(const Step&, const Step&) = default;
};

struct Schedule {
  std::string name;
  int rank = 0;
  int size = 1;
  std::array<std::uint32_t, 4> chunks{};  // into how many chunks each Buf is cut
  std::uint32_t rounds = 0;               // the same on every rank, so that flags can count them
  std::vector<std::vector<int>> groups;   // ranks that share memory, ascending
  // scratch_like[i]: scratch chunk i is as large as this chunk of the larger user buffer. Board
  // chunks need none: the reader's destination says how much there is.
  std::vector<std::uint32_t> scratch_like;
  std::vector<Step> steps;  // ordered by (round, channel)
  // `publish` copies nothing: it tells where the data lies, and readers fetch it out of the memory
  // of whoever published it. The same on every rank.
  bool by_reference = false;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Every rank's schedule of one collective: what is verified, drawn, costed and stored.
struct World {
  Collective collective{};
  int root = 0;
  std::vector<Schedule> ranks;  // ranks[r].rank == r
  friend bool operator==(const World&, const World&) = default;
};

/// `parse_world` reads what `to_json` writes; what is wrong throws Error{invalid_argument} naming
/// the rank, the step and the field. It checks form only: run `verify` before executing.
std::string to_json(const World& world);
World parse_world(std::string_view json);

}  // namespace sinew
