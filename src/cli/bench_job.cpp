#include "cli/bench_job.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>

#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "transport/cores.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// Ranks of one running kernel read the same clock.
std::uint64_t kernel_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return std::hash<std::string>{}(id);
}

void check(const BenchOptions& o, const MpiSeat& seat) {
  if (o.setup.transport != "mpi")
    throw Error(
        Errc::invalid_argument,
        fmt::format("mpirun started {} of this program: add --transport mpi to measure over "
                    "MPI, or start it without mpirun",
                    seat.size));
  if (o.ranks_given && parse_ranks(o.ranks) != std::vector<int>{seat.size})
    throw Error(
        Errc::invalid_argument,
        fmt::format("-p {}, but mpirun started {} ranks; leave -p out", o.ranks, seat.size));
  if (!o.sweeps.empty())
    throw Error(Errc::invalid_argument,
                fmt::format("--sweep starts ranks once for each value: leave mpirun out, `sinew "
                            "bench ... --transport mpi --mpi {} -p {} --sweep {}`",
                            name(seat.mpi), seat.size, o.sweeps.front()));
  if (!o.against.empty())
    throw Error(Errc::invalid_argument,
                fmt::format("--against needs a program that starts all contenders: leave mpirun "
                            "out, `sinew bench ... --transport mpi --mpi {} -p {} --against {}`",
                            name(seat.mpi), seat.size, o.against));
}

}  // namespace

std::optional<MpiSeat> bench_seat() {
  for (const auto& seat : mpi_seats(process_environment()))
    if (seat.size > 1) return seat;
  return {};
}

bool sits_down(const BenchOptions& o, const MpiSeat& seat) {
  try {
    check(o, seat);
  } catch (const Error&) {
    if (seat.rank == 0) throw;
    return false;
  }
  if (seat.rank > 0 && std::freopen("/dev/null", "w", stdout) == nullptr)
    throw Error(Errc::system, "cannot open /dev/null");
  return true;
}

// The ranks meet over a communicator of their own, which works wherever the job runs.
class BenchJob::Meeting final : public bench::Meeting {
 public:
  explicit Meeting(Communicator communicator)
      : communicator_(std::move(communicator)), stamps_(bench::kMaxSamples) {
    const auto mine = kernel_id();
    std::vector<std::uint64_t> kernels(static_cast<std::size_t>(communicator_.size()));
    communicator_.allgather(std::span(&mine, 1), std::span(kernels));
    const auto here = std::count(kernels.begin(), kernels.end(), mine);
    one_clock_ = here == communicator_.size();
    // Launchers may have bound this rank to one core of those that all have together.
    const auto cores = within_quota(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
    std::int32_t crowded = here > cores ? 1 : 0;
    communicator_.allreduce(std::span(&crowded, 1), ReduceOp::max);
    crowded_ = crowded != 0;
  }

  [[nodiscard]] bench::Seat seat() const noexcept override {
    return {.rank = communicator_.rank(), .ranks = communicator_.size()};
  }
  [[nodiscard]] bool crowded() const noexcept override { return crowded_; }
  void barrier() override { communicator_.barrier(); }
  std::uint32_t agree(std::uint32_t value_of_rank_0) override {
    std::int32_t value = static_cast<std::int32_t>(value_of_rank_0);
    communicator_.broadcast(std::span(&value, 1), 0);
    communicator_.barrier();
    return static_cast<std::uint32_t>(value);
  }
  void stamp(std::uint32_t sample, bench::Stamp times) noexcept override {
    // Where clocks differ, only how long it took can be compared.
    if (!one_clock_) times = {0, times.end_ns - times.begin_ns};
    stamps_[sample] = times;
  }
  [[nodiscard]] bench::Stamp last_of_all(std::uint32_t sample) override {
    std::uint64_t last[2] = {stamps_[sample].begin_ns, stamps_[sample].end_ns};
    communicator_.allreduce(std::span<std::uint64_t>(last), ReduceOp::max);
    return {last[0], last[1]};
  }
  void report(const bench::Report& report) override {
    turn_ = {};
    turn_.wrong = report.wrong;
    turn_.batch = report.batch;
    communicator_.allreduce(std::span(&turn_.wrong, 1), ReduceOp::sum);
    std::vector<std::uint64_t> begins, ends;
    for (std::uint32_t i = 0; i < report.samples; ++i) {
      begins.push_back(stamps_[i].begin_ns);
      ends.push_back(stamps_[i].end_ns);
    }
    communicator_.allreduce(std::span(begins), report.from_first ? ReduceOp::min : ReduceOp::max);
    communicator_.allreduce(std::span(ends), ReduceOp::max);
    for (std::uint32_t i = 0; i < report.samples; ++i)
      turn_.samples_us.push_back(static_cast<double>(ends[i] - begins[i]) * 1e-3 / report.batch);
  }
  [[nodiscard]] const bench::Turn& turn() const noexcept { return turn_; }

 private:
  Communicator communicator_;
  bool one_clock_ = true;
  bool crowded_ = false;
  std::vector<bench::Stamp> stamps_;
  bench::Turn turn_;
};

BenchJob::BenchJob(const BenchSetup& setup)
    : all_(join_mpi(setup.mpi, process_environment(), Clock::now() + 60s), options_for(setup)),
      meeting_(std::make_unique<Meeting>(all_.dup())) {}

BenchJob::~BenchJob() = default;

void BenchJob::add(const std::string& name, const BenchSetup& setup) {
  entrants_.push_back({name, make_contender(all_.dup(), setup)});
}

bench::Turn BenchJob::take_turn(Entrant& entrant, const bench::Limits& limits,
                                bench::Session* session) {
  bench::Turn turn;
  if (session == nullptr) {
    turn.outcome = bench::Outcome::unsupported;
  } else {
    session->measure(limits);
    turn = meeting_->turn();
    turn.remark = entrant.contender->remark();
  }
  turn.contender = entrant.name;
  return turn;
}

bench::Result BenchJob::play(const bench::Case& what, int rounds, const bench::Limits& limits) {
  bench::check(what, size());
  std::vector<std::unique_ptr<bench::Session>> sessions;
  for (auto& entrant : entrants_) {
    sessions.emplace_back();
    if (!entrant.contender->supports(what)) continue;
    sessions.back() = std::make_unique<bench::Session>(*meeting_, *entrant.contender, what);
    sessions.back()->verify();
  }
  bench::Result result{.what = what, .ranks = size(), .rounds = {}};
  for (int number = 0; number < rounds; ++number) {
    bench::Round round;
    for (std::size_t i = 0; i < entrants_.size(); ++i) {
      const auto which = (i + static_cast<std::size_t>(number)) % entrants_.size();
      round.turns.push_back(take_turn(entrants_[which], limits, sessions[which].get()));
    }
    result.rounds.push_back(std::move(round));
  }
  return result;
}

}  // namespace sinew
