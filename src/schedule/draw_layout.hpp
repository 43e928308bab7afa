// What the text and the SVG drawing share: who sends what to whom, how steps are spelled, and how
// much of a large world is shown.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <sinew/schedule.hpp>

namespace sinew::detail {

/// A send and the receive it pairs with: the k-th of each per (from, to, channel). In a broken
/// world one of them may be missing; its round is then kNoRound, so that the drawing shows the
/// fault.
struct Message {
  static constexpr std::int64_t kNoRound = -1;
  int from = 0;
  int to = 0;
  std::uint16_t channel = 0;
  std::int64_t send_round = kNoRound;
  std::int64_t recv_round = kNoRound;
  Chunks src{}, dst{};
  bool reduces = false;
  int turn = 0;  // +1 or -1: part of a rotation, and passes from the last rank to the first or back
  [[nodiscard]] bool paired() const { return send_round != kNoRound && recv_round != kNoRound; }
};
std::vector<Message> match_messages(const World& world);

bool is_message(Op op) noexcept;
bool is_local(Op op) noexcept;

/// "o4-7"; an empty range is "sync", since only the fact of the message matters then.
std::string spell(const Chunks& chunks);
/// Ranks as ranges: "0-3, 6".
std::string spell_ranks(const std::vector<int>& ranks);
/// "1 rank", "2 ranks".
std::string plural(std::uint64_t count, const std::string& noun);

/// Spells steps. Groups are numbered over the whole world: equal indices of two ranks may name
/// different groups.
class Notation {
 public:
  explicit Notation(const World& world);
  [[nodiscard]] std::string spell(const Schedule& schedule, const Step& step) const;
  /// Index into groups(), or -1 when all ranks take part.
  [[nodiscard]] int group_of(const Schedule& schedule, const Step& step) const;
  [[nodiscard]] const std::vector<std::vector<int>>& groups() const { return groups_; }

 private:
  std::size_t size_;
  std::vector<std::vector<int>> groups_;
};

std::uint64_t count_rounds(const World& world);
/// "allreduce ring: 4 ranks, 6 rounds, 52 steps"
std::string title(const World& world);
/// How the buffers are cut, and what a rank sends, publishes and gathers: a sentence each.
std::vector<std::string> facts(const World& world);

/// A drawing of everything up to 16 ranks; of more, the beginning.
struct Shown {
  int ranks = 0;
  std::uint32_t rounds = 0;
  std::string left_out;  // a sentence, or empty
};
Shown shown(const World& world);
/// The steps that are shown, by rank and round.
using StepTable = std::vector<std::vector<std::vector<const Step*>>>;
StepTable steps_by_round(const World& world, const Shown& part);

/// A row of the drawing: one round, or several in which nobody does anything.
struct Rounds {
  std::uint32_t first = 0, last = 0;
  bool idle = false;
};
std::vector<Rounds> rounds_of(const StepTable& steps, std::uint32_t count);
std::string spell(const Rounds& rounds);

/// What occurs in a drawing, so that its legend explains that and no more.
struct Uses {
  std::array<const Step*, 9>
      example{};  // by op: the first such step, one that moves data where there is one
  std::array<int, 9> example_rank{};
  std::array<bool, 4> bufs{};
  bool sync = false;      // steps that move nothing
  bool channels = false;  // any but channel 0
};
Uses uses(const StepTable& steps);

}  // namespace sinew::detail
