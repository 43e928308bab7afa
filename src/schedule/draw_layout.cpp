#include "schedule/draw_layout.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace sinew::detail {
namespace {

// A full rotation (every rank sends d further) and a chain of equal hops read best on a cylinder:
// out at one side, in at the other. Half-way round is an exchange and is drawn straight.
void mark_turns(std::vector<Message>& messages, int size) {
  const auto hop = [size](const Message& m) { return ((m.to - m.from) % size + size) % size; };
  std::map<std::tuple<std::int64_t, int, int>, int> senders;  // by round, channel and hop
  std::map<std::int64_t, int> in_round;
  std::map<int, std::map<int, int>> hops;  // by channel
  for (const Message& m : messages) {
    ++in_round[m.send_round];
    ++senders[{m.send_round, m.channel, hop(m)}];
    ++hops[m.channel][hop(m)];
  }
  for (Message& m : messages) {
    const int d = hop(m);
    const bool crowded = in_round[m.send_round] > 2 * size;  // as in everybody to everybody
    const bool rotation = senders[{m.send_round, m.channel, d}] >= size && !crowded;
    const bool chain = hops[m.channel].size() == 1;
    if (!m.paired() || !(rotation || chain) || 2 * d == size) continue;
    if (2 * d < size && m.to < m.from) m.turn = 1;
    if (2 * d > size && m.to > m.from) m.turn = -1;
  }
}

std::string range_of(std::uint64_t low, std::uint64_t high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{}-{}", low, high);
}

// Of what one rank does with one kind of traffic.
struct Traffic {
  std::uint64_t messages = 0, sent = 0, published = 0, gathered = 0;
};

Traffic traffic_of(const Schedule& schedule) {
  Traffic t;
  for (const Step& step : schedule.steps) {
    const auto group = static_cast<std::size_t>(step.group);
    const std::size_t members = step.group >= 0 && group < schedule.groups.size()
                                    ? schedule.groups[group].size()
                                    : static_cast<std::size_t>(schedule.size);
    const std::uint64_t others = step.peer >= 0 ? 1 : members - 1;
    if (step.op == Op::send) ++t.messages, t.sent += step.src.count;
    if (step.op == Op::publish) t.published += step.board.count;
    if (step.op == Op::gather_copy || step.op == Op::gather_reduce)
      t.gathered += step.board.count * others;
    if (step.op == Op::gather_reduce_all) t.gathered += step.src.count * others;
  }
  return t;
}

}  // namespace

bool is_message(Op op) noexcept {
  return op == Op::send || op == Op::recv || op == Op::recv_reduce;
}
bool is_local(Op op) noexcept { return op == Op::copy || op == Op::reduce; }

std::vector<Message> match_messages(const World& world) {
  std::map<std::tuple<int, int, int>, std::vector<Message>> lanes;  // by from, to, channel
  std::map<std::tuple<int, int, int>, std::array<std::size_t, 2>> seen;
  for (const Schedule& schedule : world.ranks) {
    for (const Step& step : schedule.steps) {
      if (!is_message(step.op)) continue;
      const bool send = step.op == Op::send;
      const int from = send ? schedule.rank : step.peer;
      const int to = send ? step.peer : schedule.rank;
      const std::tuple key{from, to, int{step.channel}};
      std::vector<Message>& lane = lanes[key];
      const std::size_t index = seen[key][send ? 0 : 1]++;
      if (index == lane.size()) lane.push_back({.from = from, .to = to, .channel = step.channel});
      Message& m = lane[index];
      (send ? m.send_round : m.recv_round) = step.round;
      (send ? m.src : m.dst) = send ? step.src : step.dst;
      m.reduces = m.reduces || step.op == Op::recv_reduce;
    }
  }
  std::vector<Message> all;
  for (const auto& [key, lane] : lanes) all.insert(all.end(), lane.begin(), lane.end());
  mark_turns(all, static_cast<int>(world.ranks.size()));
  std::stable_sort(all.begin(), all.end(),
                   [](const Message& a, const Message& b) { return a.send_round < b.send_round; });
  return all;
}

std::string spell(const Chunks& chunks) {
  if (chunks.count == 0) return "sync";
  const char letter = "iosb"[static_cast<std::size_t>(chunks.buf) % 4];
  return letter + range_of(chunks.first, std::uint64_t{chunks.first} + chunks.count - 1);
}

std::string spell_ranks(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += text.empty() ? "" : ", ";
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string plural(std::uint64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

Notation::Notation(const World& world) : size_(world.ranks.size()) {
  for (const Schedule& schedule : world.ranks)
    for (const std::vector<int>& group : schedule.groups)
      if (group.size() < size_ && std::find(groups_.begin(), groups_.end(), group) == groups_.end())
        groups_.push_back(group);
}

int Notation::group_of(const Schedule& schedule, const Step& step) const {
  if (step.group < 0 || static_cast<std::size_t>(step.group) >= schedule.groups.size()) return -1;
  const auto& members = schedule.groups[static_cast<std::size_t>(step.group)];
  const auto found = std::find(groups_.begin(), groups_.end(), members);
  return found == groups_.end() ? -1 : static_cast<int>(found - groups_.begin());
}

std::string Notation::spell(const Schedule& schedule, const Step& step) const {
  const int group = group_of(schedule, step);
  const std::string all = group < 0 ? "@*" : fmt::format("@g{}", group);
  const std::string whose = step.peer < 0 ? all : fmt::format("@r{}", step.peer);
  const std::string src = detail::spell(step.src);
  const std::string dst = detail::spell(step.dst);
  const std::string board = detail::spell(step.board);
  const auto of_step = [&]() -> std::string {
    switch (step.op) {
      case Op::send:
        return fmt::format("{} -> r{}", src, step.peer);
      case Op::recv:
        return fmt::format("{} <- r{}", dst, step.peer);
      case Op::recv_reduce:
        return fmt::format("{} += r{}", dst, step.peer);
      case Op::copy:
        return fmt::format("{} = {}", dst, src);
      case Op::reduce:
        return fmt::format("{} += {}", dst, src);
      case Op::publish:
        if (step.src.count == 0) return fmt::format("sync => {}", all.substr(1));
        return fmt::format("{} => {}{}", src, board, group < 0 ? "" : all);
      case Op::gather_copy:
        if (step.dst.count == 0) return fmt::format("sync <- {}", whose.substr(1));
        return fmt::format("{} <- {}{}", dst, board, whose);
      case Op::gather_reduce:
        return fmt::format("{} = sum {}{}", dst, board, all);
      case Op::gather_reduce_all:
        return fmt::format("{}{} = sum {}{}", dst, all, src, all);
    }
    return "?";
  };
  return step.channel == 0 ? of_step() : fmt::format("{} ~{}", of_step(), step.channel);
}

std::uint64_t count_rounds(const World& world) {
  std::uint64_t rounds = 0;
  for (const Schedule& schedule : world.ranks) {
    rounds = std::max<std::uint64_t>(rounds, schedule.rounds);
    for (const Step& step : schedule.steps)
      rounds = std::max<std::uint64_t>(rounds, std::uint64_t{step.round} + 1);
  }
  return rounds;
}

std::string title(const World& world) {
  std::uint64_t steps = 0;
  for (const Schedule& schedule : world.ranks) steps += schedule.steps.size();
  const bool inward =
      world.collective == Collective::reduce || world.collective == Collective::gather;
  const std::string root = has_root(world.collective)
                               ? fmt::format(" {} rank {}", inward ? "to" : "from", world.root)
                               : "";
  const std::string algorithm = world.ranks.empty() ? "" : " " + world.ranks.front().name;
  return fmt::format("{}{}{}: {}, {}, {}", name(world.collective), algorithm, root,
                     plural(world.ranks.size(), "rank"), plural(count_rounds(world), "round"),
                     plural(steps, "step"));
}

std::vector<std::string> facts(const World& world) {
  std::array<std::uint32_t, 4> chunks{};
  Traffic low, high;
  bool first = true;
  for (const Schedule& schedule : world.ranks) {
    for (std::size_t b = 0; b < chunks.size(); ++b)
      chunks[b] = std::max(chunks[b], schedule.chunks[b]);
    const Traffic t = traffic_of(schedule);
    for (const auto field :
         {&Traffic::messages, &Traffic::sent, &Traffic::published, &Traffic::gathered}) {
      low.*field = first ? t.*field : std::min(low.*field, t.*field);
      high.*field = std::max(high.*field, t.*field);
    }
    first = false;
  }
  std::string cut;
  for (const Buf buf : {Buf::input, Buf::output, Buf::scratch, Buf::board})
    if (const auto count = chunks[static_cast<std::size_t>(buf)])
      cut += fmt::format("{}{} {}", cut.empty() ? "chunks: " : ", ", name(buf), count);

  const std::uint32_t whole = std::max(chunks[0], chunks[1]);
  const char* what = chunks[0] == chunks[1] ? "data" : chunks[0] > chunks[1] ? "input" : "output";
  const auto share = [&](std::uint64_t least, std::uint64_t most) -> std::string {
    if (whole == 0) return "";
    const auto times = [&](std::uint64_t count) {
      return fmt::format("{:.3g}", double(count) / whole);
    };
    return fmt::format(" = {}{} x the {}", times(least), least == most ? "" : "-" + times(most),
                       what);
  };
  const auto amount = [](std::uint64_t least, std::uint64_t most, const char* noun) {
    return fmt::format("{} {}{}", range_of(least, most), noun, least == 1 && most == 1 ? "" : "s");
  };
  std::vector<std::string> lines;
  if (!cut.empty()) lines.push_back(cut);
  if (high.messages > 0)
    lines.push_back(fmt::format("each rank sends {}: {}{}",
                                amount(low.messages, high.messages, "message"),
                                amount(low.sent, high.sent, "chunk"), share(low.sent, high.sent)));
  std::string board;
  if (high.published > 0) board = "publishes " + amount(low.published, high.published, "chunk");
  if (high.gathered > 0)
    board += fmt::format("{}reads {} of others", board.empty() ? "" : " and ",
                         amount(low.gathered, high.gathered, "chunk"));
  if (!board.empty()) lines.push_back("each rank " + board);
  return lines;
}

Shown shown(const World& world) {
  constexpr int kWholeRanks = 16, kSomeRanks = 8;
  constexpr std::uint64_t kWholeRounds = 64, kSomeRounds = 8;
  const int ranks = static_cast<int>(world.ranks.size());
  const std::uint64_t rounds = count_rounds(world);
  const bool whole = ranks <= kWholeRanks;
  Shown part;
  part.ranks = whole ? ranks : kSomeRanks;
  part.rounds = static_cast<std::uint32_t>(std::min(rounds, whole ? kWholeRounds : kSomeRounds));
  if (part.ranks < ranks) part.left_out = fmt::format("ranks {}-{}", part.ranks, ranks - 1);
  if (part.rounds < rounds)
    part.left_out += fmt::format("{}rounds {}", part.left_out.empty() ? "" : " and ",
                                 range_of(part.rounds, rounds - 1));
  if (!part.left_out.empty()) part.left_out = "not drawn: " + part.left_out;
  return part;
}

StepTable steps_by_round(const World& world, const Shown& part) {
  StepTable steps(static_cast<std::size_t>(part.ranks));
  for (std::size_t r = 0; r < steps.size(); ++r) {
    steps[r].resize(part.rounds);
    for (const Step& step : world.ranks[r].steps)
      if (step.round < part.rounds) steps[r][step.round].push_back(&step);
  }
  return steps;
}

std::vector<Rounds> rounds_of(const StepTable& steps, std::uint32_t count) {
  const auto idle = [&](std::uint32_t round) {
    return std::all_of(steps.begin(), steps.end(),
                       [&](const auto& rank) { return rank[round].empty(); });
  };
  std::vector<Rounds> rows;
  for (std::uint32_t round = 0; round < count; ++round) {
    if (idle(round) && !rows.empty() && rows.back().idle)
      rows.back().last = round;
    else
      rows.push_back({round, round, idle(round)});
  }
  return rows;
}

std::string spell(const Rounds& rounds) { return range_of(rounds.first, rounds.last); }

Uses uses(const StepTable& steps) {
  Uses seen;
  for (std::size_t rank = 0; rank < steps.size(); ++rank) {
    for (const auto& round : steps[rank]) {
      for (const Step* step : round) {
        const auto op = static_cast<std::size_t>(step->op);
        const bool moves = step->src.count + step->dst.count > 0;
        const Step* const example = seen.example[op];
        if (example == nullptr || (moves && example->src.count + example->dst.count == 0)) {
          seen.example[op] = step;
          seen.example_rank[op] = static_cast<int>(rank);
        }
        for (const Chunks& chunks : {step->src, step->dst, step->board})
          if (chunks.count > 0) seen.bufs[static_cast<std::size_t>(chunks.buf)] = true;
        seen.sync = seen.sync || !moves;
        seen.channels = seen.channels || step->channel > 0;
      }
    }
  }
  return seen;
}

}  // namespace sinew::detail
