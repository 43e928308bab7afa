// A library written by hand over a shared page goes through the tournament: right results are
// right, wrong ones are counted, and the dead and the stuck are named and cleared away.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "measure/measure.hpp"
#include "measure/peers.hpp"
#include "measure/tournament.hpp"

namespace sinew::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 3;
constexpr std::size_t kMaxElements = 4096;
constexpr Limits kShort{.budget_s = 0.01, .samples = 20, .batch = 0};

/// Shared by a group's ranks: a meeting point, everybody's input, and pids for the test.
struct Board {
  std::atomic<std::uint32_t> arrived{0};
  std::atomic<std::uint32_t> meetings{0};
  std::atomic<int> pids[kRanks]{};
  std::atomic<int> running{0};    // ranks in a call
  std::atomic<int> disturbed{0};  // times that a rank rewrote its input meanwhile
  float input[kRanks][kMaxElements]{};

  void meet() {
    const std::uint32_t now = meetings.load();
    if (arrived.fetch_add(1) + 1 == kRanks) {
      arrived.store(0);
      meetings.store(now + 1);
    }
    while (meetings.load() == now) std::this_thread::sleep_for(20us);
  }
};

struct Unmap {
  void operator()(Board* board) const { ::munmap(board, sizeof *board); }
};
using SharedBoard = std::unique_ptr<Board, Unmap>;

SharedBoard make_board() {
  void* memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return SharedBoard(new (memory) Board);
}

enum class Fault { none, one_element, early_exit, late_return, death, hang, exception, refusal };

/// Every collective by its definition: all inputs in sight, each rank takes what is its own.
class ByHand final : public Contender {
 public:
  ByHand(Board& board, Seat seat, Fault fault) : board_(board), seat_(seat), fault_(fault) {}

  bool supports(const Case&) override { return fault_ != Fault::refusal; }

  void prepare(const Case& what, const Buffers& buffers) override {
    what_ = what;
    in_ = as_floats(buffers.input);
    out_ = as_floats(buffers.output);
  }

  void run() override {
    const bool culprit = seat_.rank == 1;
    if (culprit && fault_ == Fault::death) ::raise(SIGKILL);
    if (culprit && fault_ == Fault::exception) throw std::runtime_error("out of cheese");
    while (culprit && fault_ == Fault::hang) std::this_thread::sleep_for(1ms);
    if (fault_ == Fault::early_exit) return;
    ++board_.running;
    std::ranges::copy(in_, board_.input[seat_.rank]);
    board_.meet();
    for (std::size_t i = 0; i < out_.size(); ++i) out_[i] = result(i);
    if (culprit && fault_ == Fault::one_element) out_[0] += 1;
    board_.meet();
    if (culprit && fault_ == Fault::late_return) std::this_thread::sleep_for(1ms);
    --board_.running;
  }

  void rewrite(const Buffers& buffers) override {
    if (board_.running != 0) ++board_.disturbed;
    Contender::rewrite(buffers);
  }

 private:
  static std::span<float> as_floats(std::span<std::byte> bytes) {
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }

  float sum(std::size_t i) const {
    float total = 0;
    for (const auto& row : board_.input) total += row[i];
    return total;
  }

  float result(std::size_t i) const {
    const std::size_t part = elements_per_rank(what_, kRanks);
    const auto rank = static_cast<std::size_t>(seat_.rank);
    switch (what_.collective) {
      case Collective::allreduce:
      case Collective::reduce:
        return sum(i);
      case Collective::reduce_scatter:
        return sum(rank * part + i);
      case Collective::broadcast:
        return board_.input[what_.root][i];
      case Collective::scatter:
        return board_.input[what_.root][rank * part + i];
      case Collective::allgather:
      case Collective::gather:
        return board_.input[i / part][i % part];
      case Collective::alltoall:
        return board_.input[i / part][rank * part + i % part];
      case Collective::allgatherv:
        for (std::size_t from = 0;; i -= what_.counts[from++]) {
          if (i < what_.counts[from]) return board_.input[from][i];
        }
      case Collective::alltoallv:
        for (std::size_t from = 0;; i -= what_.counts[from++ * kRanks + rank]) {
          const auto* row = &what_.counts[from * kRanks];
          if (i >= row[rank]) continue;
          return board_.input[from][std::accumulate(row, row + rank, i)];
        }
      case Collective::barrier:
        break;
    }
    return 0;
  }

  Board& board_;
  Seat seat_;
  Fault fault_;
  Case what_;
  std::span<float> in_, out_;
};

ContenderSpec by_hand(std::string name, Board& board, Fault fault = Fault::none) {
  return {.name = std::move(name), .launch = fork_ranks([&board, fault](Control& control) {
                                     ByHand contender(board, control.seat(), fault);
                                     serve(control, contender);
                                   })};
}

Case sized(Collective collective, std::uint64_t elements = 1001) {
  Case what{.collective = collective, .bytes = elements * sizeof(float)};
  if (collective == Collective::allgatherv) what.counts = {5, 0, 700};
  if (collective == Collective::alltoallv) what.counts = {1, 2, 300, 4, 0, 6, 70, 8, 0};
  return what;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD; }

TEST(Measure, right_results_of_every_collective_are_found_right) {
  const auto board = make_board();
  Tournament tournament(kRanks);
  ASSERT_TRUE(tournament.add(by_hand("hand", *board)));
  for (const Collective collective : kCollectives) {
    for (const int root : {0, 2}) {
      Case what = sized(collective);
      what.root = root;
      const Result result = tournament.play(what, 2, kShort);
      ASSERT_EQ(result.rounds.size(), 2U) << name(collective);
      for (const auto& round : result.rounds) {
        const Turn* turn = round.turn("hand");
        ASSERT_NE(turn, nullptr);
        EXPECT_EQ(turn->outcome, Outcome::measured) << turn->story;
        EXPECT_EQ(turn->wrong, 0U) << name(collective) << " root " << root;
        EXPECT_FALSE(turn->samples_us.empty());
      }
    }
  }
}

TEST(Measure, one_wrong_element_is_one_wrong_element_in_every_collective) {
  const auto board = make_board();
  Tournament tournament(kRanks);
  ASSERT_TRUE(tournament.add(by_hand("broken", *board, Fault::one_element)));
  for (const Collective collective : kCollectives) {
    if (collective == Collective::barrier) continue;
    Case what = sized(collective);
    what.root = 1;  // the culprit, so that it has an output to spoil
    EXPECT_EQ(wrong_elements(tournament.play(what, 1, kShort), "broken"), 1U) << name(collective);
  }
}

TEST(Measure, a_barrier_that_lets_ranks_pass_early_is_wrong) {
  const auto board = make_board();
  Tournament tournament(kRanks);
  ASSERT_TRUE(tournament.add(by_hand("leaky", *board, Fault::early_exit)));
  EXPECT_GT(wrong_elements(tournament.play(sized(Collective::barrier), 1, kShort), "leaky"), 0U);
}

TEST(Measure, in_place_rewritten_and_fixed_batches_go_through) {
  const auto board = make_board();
  Tournament tournament(kRanks);
  ASSERT_TRUE(tournament.add(by_hand("hand", *board)));
  Case what = sized(Collective::allreduce);
  what.in_place = true;
  what.rewrite = true;
  Result result = tournament.play(what, 1, kShort);
  EXPECT_EQ(wrong_elements(result, "hand"), 0U);
  EXPECT_EQ(result.rounds[0].turn("hand")->batch, 1U) << "a batch would see its own results";
  what.rewrite = false;
  result = tournament.play(what, 1, {.budget_s = 60, .samples = 5, .batch = 3});
  EXPECT_EQ(result.rounds[0].turn("hand")->batch, 3U);
  EXPECT_EQ(result.rounds[0].turn("hand")->samples_us.size(), 5U);
}

TEST(Measure, input_is_rewritten_when_all_calls_have_returned) {
  const auto board = make_board();
  Tournament tournament(kRanks);
  ASSERT_TRUE(tournament.add(by_hand("late", *board, Fault::late_return)));
  Case what = sized(Collective::allreduce);
  what.rewrite = true;
  const auto result = tournament.play(what, 1, {.budget_s = 60, .samples = 20, .batch = 1});
  EXPECT_EQ(result.rounds[0].turn("late")->samples_us.size(), 20U);
  EXPECT_EQ(board->disturbed.load(), 0);
}

TEST(Measure, a_sample_begins_with_the_last_rank_or_with_the_first) {
  for (const bool from_first : {false, true}) {
    ControlOwner owner(2);
    for (const int rank : {0, 1}) {
      Control control(owner.path(), rank);
      const auto begin_ns = static_cast<std::uint64_t>(rank == 0 ? 5000 : 8000);
      control.stamp(0, {.begin_ns = begin_ns, .end_ns = begin_ns + 9000});
      control.report({.wrong = 1, .samples = 1, .batch = 2, .from_first = from_first});
    }
    EXPECT_EQ(owner.samples_us(), std::vector<double>{from_first ? 6.0 : 4.5});
    EXPECT_EQ(owner.wrong(), 2U);
    EXPECT_EQ(owner.batch(), 2U);
  }
}

/// One rank that meets nobody.
class Alone final : public Meeting {
 public:
  explicit Alone(bool crowded) : crowded_(crowded) {}
  [[nodiscard]] Seat seat() const noexcept override { return {.rank = 0, .ranks = 1}; }
  [[nodiscard]] bool crowded() const noexcept override { return crowded_; }
  void barrier() override {}
  std::uint32_t agree(std::uint32_t value_of_rank_0) override { return value_of_rank_0; }
  void stamp(std::uint32_t /*sample*/, Stamp times) noexcept override { last_ = times; }
  [[nodiscard]] Stamp last_of_all(std::uint32_t /*sample*/) override { return last_; }
  void report(const Report& report) override { said = report; }

  Report said;

 private:
  bool crowded_;
  Stamp last_;
};

class Slow final : public Contender {
 public:
  void prepare(const Case& /*what*/, const Buffers& /*buffers*/) override {}
  void run() override { std::this_thread::sleep_for(1ms); }
};

// A time slice of the scheduler is longer than a call then, and who has the core first is chance.
TEST(Measure, where_ranks_share_cores_a_sample_is_several_long_calls_from_the_first_start) {
  for (const bool crowded : {false, true}) {
    Alone meeting(crowded);
    Slow contender;
    Session session(meeting, contender, {.collective = Collective::allreduce, .bytes = 64});
    session.measure({.budget_s = 1, .samples = 2});
    EXPECT_EQ(meeting.said.batch > 1, crowded) << meeting.said.batch;
    EXPECT_EQ(meeting.said.from_first, crowded);
    EXPECT_EQ(meeting.said.samples, 2U);
  }
}

TEST(Measure, as_many_calls_warm_up_as_were_asked_for) {
  for (const int warm_up : {0, 1, 7}) {
    const auto board = make_board();
    Tournament tournament(kRanks);
    ASSERT_TRUE(tournament.add(by_hand("hand", *board)));
    const Limits limits{.budget_s = 60, .samples = 5, .batch = 3, .warm_up = warm_up};
    const Result result = tournament.play(sized(Collective::allreduce), 2, limits);
    EXPECT_EQ(result.rounds[1].turn("hand")->samples_us.size(), 5U);
    // The check is one call; ranks meet twice in each.
    const auto calls = 1 + 2 * (static_cast<std::uint32_t>(warm_up) + 5 * 3);
    EXPECT_EQ(board->meetings.load(), 2 * calls) << warm_up;
  }
}

TEST(Measure, contenders_take_turns_and_each_begins_a_round) {
  const auto first = make_board();
  const auto second = make_board();
  Tournament tournament(kRanks);
  ASSERT_TRUE(tournament.add(by_hand("first", *first)));
  ASSERT_TRUE(tournament.add(by_hand("second", *second)));
  const Result result = tournament.play(sized(Collective::allreduce), 2, kShort);
  EXPECT_EQ(result.rounds[0].turns[0].contender, "first");
  EXPECT_EQ(result.rounds[0].turns[1].contender, "second");
  EXPECT_EQ(result.rounds[1].turns[0].contender, "second");
}

struct Misbehaviour {
  Fault fault;
  std::string told;
};

TEST(Measure, whoever_dies_hangs_or_fails_is_named_and_the_rest_play_on) {
  for (const auto& [fault, told] :
       {Misbehaviour{Fault::death, "rank 1"}, Misbehaviour{Fault::hang, "not finished"},
        Misbehaviour{Fault::exception, "out of cheese"}}) {
    const std::size_t descriptors = open_descriptors();
    {
      const auto good = make_board();
      const auto bad = make_board();
      Tournament tournament(kRanks, {.start_s = 60, .turn_s = fault == Fault::hang ? 1.0 : 60.0});
      ASSERT_TRUE(tournament.add(by_hand("bad", *bad, fault)));
      ASSERT_TRUE(tournament.add(by_hand("good", *good)));
      const Result result = tournament.play(sized(Collective::allreduce), 3, kShort);
      ASSERT_EQ(tournament.failures().size(), 1U);
      EXPECT_EQ(tournament.failures()[0].contender, "bad");
      EXPECT_NE(tournament.failures()[0].story.find(told), std::string::npos)
          << tournament.failures()[0].story;
      EXPECT_NE(tournament.failures()[0].story.find("allreduce of 4004 B"), std::string::npos);
      EXPECT_EQ(tournament.in_play(), std::vector<std::string>{"good"});
      EXPECT_EQ(result.rounds[0].turn("bad")->outcome, Outcome::failed);
      EXPECT_EQ(result.rounds[1].turn("bad"), nullptr);
      EXPECT_EQ(result.rounds[2].turn("good")->outcome, Outcome::measured);
    }
    EXPECT_FALSE(has_children());
    EXPECT_EQ(open_descriptors(), descriptors);
  }
}

TEST(Measure, what_a_contender_cannot_do_is_skipped_without_harm) {
  const auto board = make_board();
  Tournament tournament(kRanks);
  ASSERT_TRUE(tournament.add(by_hand("picky", *board, Fault::refusal)));
  const Result result = tournament.play(sized(Collective::gather), 2, kShort);
  EXPECT_EQ(result.rounds[1].turn("picky")->outcome, Outcome::unsupported);
  EXPECT_FALSE(over_rounds(result, "picky").has_value());
  EXPECT_TRUE(tournament.failures().empty());
}

TEST(Measure, a_program_that_does_not_start_is_reported_with_its_own_words) {
  Tournament tournament(kRanks, {.start_s = 1, .turn_s = 1});
  EXPECT_FALSE(tournament.add({.name = "missing", .launch = spawn_once({"/no/such/program"})}));
  EXPECT_FALSE(tournament.add(
      {.name = "refusing", .launch = spawn_once({"sh", "-c", "echo no licence; exit 7"})}));
  EXPECT_FALSE(tournament.add({.name = "silent", .launch = spawn_each({"sleep", "1000"})}));
  ASSERT_EQ(tournament.failures().size(), 3U);
  EXPECT_NE(tournament.failures()[0].story.find("No such file"), std::string::npos);
  EXPECT_NE(tournament.failures()[1].story.find("status 7"), std::string::npos);
  EXPECT_NE(tournament.failures()[1].story.find("no licence"), std::string::npos);
  EXPECT_NE(tournament.failures()[2].story.find("0 of 3 ranks"), std::string::npos);
  EXPECT_FALSE(has_children());
}

TEST(Measure, ranks_leave_by_themselves_when_the_parent_is_killed) {
  const auto board = make_board();
  // Ranks nobody told the kernel to end with their parent, as those of a launcher's daemon are.
  const Launcher loose = [&](const Launch& launch, std::vector<pid_t>& children) {
    for (int rank = 0; rank < launch.ranks; ++rank) {
      const pid_t child = ::fork();
      if (child != 0) {
        children.push_back(child);
        continue;
      }
      try {
        Control control(launch.control, rank);
        ByHand contender(*board, control.seat(), Fault::none);
        board->pids[rank].store(::getpid());
        serve(control, contender);
      } catch (const Abandoned&) {
      }
      ::_exit(0);
    }
  };
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    Tournament tournament(kRanks);
    tournament.add({.name = "loose", .launch = loose});
    tournament.play(sized(Collective::allreduce), 1'000'000, kShort);
    ::_exit(0);
  }
  std::vector<Fd> ranks;
  for (const auto& pid : board->pids) {
    while (pid.load() == 0) std::this_thread::sleep_for(1ms);
    ranks.push_back(open_pidfd(pid.load()));
    EXPECT_FALSE(has_ended(ranks.back()));
  }
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  for (const auto& rank : ranks) {
    for (int patience = 0; !has_ended(rank) && patience < 30'000; ++patience) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_TRUE(has_ended(rank));
    send_signal(rank, SIGKILL);
  }
}

TEST(Measure, cases_that_make_no_sense_are_refused) {
  EXPECT_THROW(check(sized(Collective::alltoallv), 2), std::invalid_argument);
  EXPECT_THROW(check({.collective = Collective::broadcast, .root = 3}, 3), std::invalid_argument);
  EXPECT_THROW(check({.collective = Collective::gather, .in_place = true}, 3),
               std::invalid_argument);
  EXPECT_THROW(peer("openmp", "/tmp"), std::invalid_argument);
}

TEST(Measure, medians_over_rounds_leave_out_rounds_in_the_slow_mode) {
  const auto round = [](double probe_us, std::vector<double> samples_us) {
    Round made{.probe_before_us = probe_us, .probe_after_us = probe_us, .turns = {}};
    made.turns.push_back({.contender = "x", .story = {}, .samples_us = std::move(samples_us)});
    return made;
  };
  const Result result{
      .what = {},
      .ranks = 2,
      .rounds = {round(0.05, {1, 2, 3}), round(0.05, {4, 5, 6}), round(0.20, {70, 80, 90})}};
  EXPECT_DOUBLE_EQ(over_rounds(result, "x")->p50_us, 5);
  EXPECT_DOUBLE_EQ(over_rounds(result, "x", 0.1)->p50_us, 3.5);
  EXPECT_DOUBLE_EQ(over_rounds(result, "x", 0.1)->min_us, 2.5);
  EXPECT_FALSE(over_rounds(result, "x", 0.01).has_value());
  EXPECT_FALSE(over_rounds(result, "y").has_value());
}

}  // namespace
}  // namespace sinew::bench
