#include "schedule/goal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include <sinew/error.hpp>
#include "schedule/form.hpp"

namespace sinew {
namespace {

constexpr std::uint64_t kBytesPerNs = 10;
constexpr std::uint16_t kBoardLane = 0xFFF;  // beyond any channel a schedule uses
constexpr int kSequenceBits = 20;

enum class Kind : std::uint8_t { send, recv, calc };

// What happens to one rank in one round of one channel.
struct Action {
  Kind kind;
  int peer;
  std::uint16_t lane;            // the channel, or kBoardLane
  std::uint64_t bytes;           // a recv takes what the matching send says
  std::uint64_t calc_bytes = 0;  // combined after it arrived
};
using Rounds = std::map<std::pair<std::uint16_t, std::uint32_t>, std::vector<Action>>;

// Bytes of chunk ranges under an even cut of the message.
class Sizes {
 public:
  Sizes(const World& world, std::uint64_t bytes)
      : chunks_(std::max({1U, world.ranks[0].chunks[0], world.ranks[0].chunks[1]})),
        bytes_(bytes) {}

  [[nodiscard]] std::uint64_t of(const Schedule& schedule, const Chunks& range) const {
    std::uint64_t total = 0;
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
      // A smaller user buffer is this rank's part of the larger one.
      const auto mine = schedule.chunks[static_cast<std::size_t>(range.buf)];
      const bool is_part = range.buf != Buf::scratch && mine < chunks_;
      const auto part = is_part ? static_cast<std::uint32_t>(schedule.rank) * mine : 0;
      total += chunk(range.buf == Buf::scratch ? schedule.scratch_like[i] : part + i);
    }
    return total;
  }

 private:
  [[nodiscard]] std::uint64_t chunk(std::uint32_t i) const {
    return bytes_ / chunks_ + (i < bytes_ % chunks_ ? 1 : 0);
  }
  std::uint32_t chunks_;
  std::uint64_t bytes_;
};

class Translation {
 public:
  Translation(const World& world, std::uint64_t bytes)
      : world_(world), sizes_(world, bytes), actions_(world.ranks.size()) {
    for (const auto& schedule : world.ranks)
      for (const auto& step : schedule.steps) add(schedule, step);
    number_messages();
  }

  [[nodiscard]] std::string text() const {
    std::string result = fmt::format("num_ranks {}\n", world_.ranks.size());
    for (std::size_t rank = 0; rank < actions_.size(); ++rank)
      result += fmt::format("\nrank {} {{\n{}}}\n", rank, block(static_cast<int>(rank)));
    return result;
  }

 private:
  using Lane = std::tuple<int, int, std::uint16_t>;  // source, destination, lane

  std::vector<Action>& at(int rank, const Step& step) {
    return actions_[static_cast<std::size_t>(rank)][{step.channel, step.round}];
  }

  void add(const Schedule& schedule, const Step& step) {
    auto& mine = at(schedule.rank, step);
    const auto src = sizes_.of(schedule, step.src), dst = sizes_.of(schedule, step.dst);
    switch (step.op) {
      case Op::send:
        mine.push_back({Kind::send, step.peer, step.channel, src});
        break;
      case Op::recv:
        mine.push_back({Kind::recv, step.peer, step.channel, dst});
        break;
      case Op::recv_reduce:
        mine.push_back({Kind::recv, step.peer, step.channel, dst, dst});
        break;
      case Op::copy:
      case Op::reduce:
        mine.push_back({Kind::calc, -1, 0, dst});
        break;
      case Op::publish:
        mine.push_back({Kind::calc, -1, 0, src});
        break;
      default:
        add_gather(schedule, step, dst);
        break;
    }
  }

  void add_gather(const Schedule& schedule, const Step& step, std::uint64_t bytes) {
    const bool combines = step.op != Op::gather_copy;
    const auto group = step.peer >= 0 ? std::vector<int>{step.peer} : members(schedule, step);
    for (const int member : group) {
      if (member == schedule.rank) continue;
      at(member, step).push_back({Kind::send, schedule.rank, kBoardLane, bytes});
      at(schedule.rank, step)
          .push_back({Kind::recv, member, kBoardLane, bytes, combines ? bytes : 0});
    }
    if (step.op != Op::gather_reduce_all) return;
    for (const int member : group) {
      if (member == schedule.rank) continue;
      at(schedule.rank, step).push_back({Kind::send, member, kBoardLane, bytes});
      at(member, step).push_back({Kind::recv, schedule.rank, kBoardLane, bytes});
    }
  }

  void number_messages() {
    for (std::size_t rank = 0; rank < actions_.size(); ++rank)
      for (const auto& [when, actions] : actions_[rank])
        for (const auto& action : actions)
          if (action.kind == Kind::send)
            sent_[{static_cast<int>(rank), action.peer, action.lane}].push_back(action.bytes);
  }

  [[nodiscard]] std::uint64_t sent_bytes(const Lane& lane, std::size_t number,
                                         const Action& recv) const {
    const auto found = sent_.find(lane);
    if (found == sent_.end() || number >= found->second.size())
      throw Error(Errc::not_verified,
                  fmt::format("rank {} waits for message {} of rank {}, which sends no such one",
                              std::get<1>(lane), number, recv.peer));
    return found->second[number];
  }

  [[nodiscard]] std::string block(int rank) const {
    std::string text;
    int label = 0;
    std::map<Lane, std::size_t> numbers;
    std::map<std::uint16_t, int> joints;  // label of the joint before, by channel
    for (const auto& [when, actions] : actions_[static_cast<std::size_t>(rank)]) {
      const auto before = joints.find(when.first);
      std::vector<int> ends;
      for (const auto& action : actions) {
        text += fmt::format("l{}: {}\n", ++label, line(rank, action, numbers));
        if (before != joints.end())
          text += fmt::format("l{} requires l{}\n", label, before->second);
        if (action.calc_bytes > 0) {
          text += fmt::format("l{}: calc {}\n", label + 1, action.calc_bytes / kBytesPerNs);
          text += fmt::format("l{} requires l{}\n", label + 1, label);
          ++label;
        }
        ends.push_back(label);
      }
      text += fmt::format("l{}: calc 0\n", ++label);
      for (const int end : ends) text += fmt::format("l{} requires l{}\n", label, end);
      joints[when.first] = label;
    }
    return text;
  }

  [[nodiscard]] std::string line(int rank, const Action& action,
                                 std::map<Lane, std::size_t>& numbers) const {
    if (action.kind == Kind::calc) return fmt::format("calc {}", action.bytes / kBytesPerNs);
    const bool sends = action.kind == Kind::send;
    const Lane lane =
        sends ? Lane{rank, action.peer, action.lane} : Lane{action.peer, rank, action.lane};
    const auto number = numbers[lane]++;
    const auto bytes = sends ? action.bytes : sent_bytes(lane, number, action);
    const auto tag = (std::size_t{action.lane} << kSequenceBits) + number;
    return fmt::format("{} {}b {} {} tag {}", sends ? "send" : "recv",
                       std::max<std::uint64_t>(1, bytes), sends ? "to" : "from", action.peer, tag);
  }

  const World& world_;
  Sizes sizes_;
  std::vector<Rounds> actions_;
  std::map<Lane, std::vector<std::uint64_t>> sent_;
};

}  // namespace

std::string to_goal(const World& world, std::uint64_t bytes) {
  if (const auto why = malformed(world)) throw Error(Errc::invalid_argument, *why);
  return Translation(world, bytes).text();
}

}  // namespace sinew
