#include "cli/bench_contender.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/text.hpp"
#include "cli/arguments.hpp"
#include "cli/bench_rank.hpp"
#include "kernel/reduce.hpp"
#include "measure/measure.hpp"
#include "model/network_file.hpp"
#include "runtime/tracing.hpp"
#include "runtime/trial.hpp"
#include "transport/cores.hpp"
#include "transport/domain.hpp"
#include "transport/local/local.hpp"
#include "transport/shm/shm.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
using bench::Buffers;
using bench::Case;
using bench::Seat;

// Small integers, exact in every type under every operation.
int sample_value(int rank, std::size_t element, ReduceOp op) {
  const auto mixed = static_cast<int>((element * 7 + static_cast<std::size_t>(rank) * 3) % 4);
  return op == ReduceOp::prod ? 1 + mixed % 2 : mixed;
}

void put(DType dtype, std::byte* at, int value) {
  const auto store = [&](auto element) { std::memcpy(at, &element, sizeof element); };
  switch (dtype) {
    case DType::f32:
      return store(static_cast<float>(value));
    case DType::f64:
      return store(static_cast<double>(value));
    case DType::f16:
      return store(to_f16(static_cast<float>(value)));
    case DType::bf16:
      return store(to_bf16(static_cast<float>(value)));
    case DType::i8:
      return store(static_cast<std::int8_t>(value));
    case DType::u8:
      return store(static_cast<std::uint8_t>(value));
    case DType::i32:
      return store(static_cast<std::int32_t>(value));
    case DType::i64:
      return store(static_cast<std::int64_t>(value));
    case DType::u64:
      return store(static_cast<std::uint64_t>(value));
  }
}

// What a call with parts of different sizes points to.
struct Parts {
  std::vector<std::size_t> counts, recv_counts;
};

// The call for a case, without buffers.
Call call_for(const bench::Case& what, int rank, int ranks, Parts& parts) {
  const auto mine = from_options(what.options);
  Call call;
  call.collective = collective_of(what.collective);
  call.dtype = mine.dtype;
  call.op = mine.op;
  call.root = what.root;
  const bool whole = call.collective == Collective::allreduce ||
                     call.collective == Collective::reduce ||
                     call.collective == Collective::broadcast;
  call.count = whole ? what.bytes / what.element_bytes : bench::elements_per_rank(what, ranks);
  if (call.collective == Collective::barrier) call.count = 0;
  parts = {};
  if (what.collective == bench::Collective::allgatherv) {
    parts.counts.assign(what.counts.begin(), what.counts.end());
    call.count = parts.counts[static_cast<std::size_t>(rank)];
    call.counts = parts.counts;
  }
  if (what.collective == bench::Collective::alltoallv) {
    for (int peer = 0; peer < ranks; ++peer) {
      parts.counts.push_back(bench::pair_elements(what, rank, peer, ranks));
      parts.recv_counts.push_back(bench::pair_elements(what, peer, rank, ranks));
    }
    call.counts = parts.counts;
    call.recv_counts = parts.recv_counts;
    call.options.likely_bytes = what.bytes;
  }
  return call;
}

class SinewContender final : public bench::Contender {
 public:
  SinewContender(Communicator communicator, const BenchSetup& setup)
      : communicator_(std::move(communicator)),
        algorithm_(setup.algorithm),
        shared_(setup.shared_buffers),
        trial_calls_(setup.trial_calls) {}

  bool supports(const Case& what) override {
    const auto wanted = algorithm_for(from_options(what.options));
    if (wanted.empty()) return true;
    Parts parts;
    auto call = call_for(what, communicator_.rank(), communicator_.size(), parts);
    call.options.algorithm = wanted;
    // There are no buffers yet that `shared` could find to be shared.
    for (const auto& candidate : communicator_.explain(call))
      if (candidate.algorithm == wanted)
        return candidate.refused.empty() || (shared_ && wanted == "shared");
    return installed_;
  }
  void set_installed() { installed_ = true; }

  std::span<std::byte> alloc(std::size_t bytes) override {
    if (!shared_) return Contender::alloc(bytes);
    auto buffer = communicator_.alloc_shared(bytes);
    const auto memory = std::as_writable_bytes(buffer.as<std::uint8_t>());
    buffers_.emplace(memory.data(), std::move(buffer));
    return memory;
  }
  void free(std::span<std::byte> memory) noexcept override {
    if (shared_)
      buffers_.erase(memory.data());
    else
      Contender::free(memory);
  }

  void prepare(const Case& what, const Buffers& buffers) override {
    what_ = from_options(what.options);
    call_ = call_for(what, communicator_.rank(), communicator_.size(), parts_);
    running_ = algorithm_for(what_);  // the call keeps a view of it
    call_.options.algorithm = running_;
    call_.input = what.in_place || what.collective == bench::Collective::broadcast
                      ? buffers.output.data()
                      : buffers.input.data();
    call_.output = buffers.output.data();
    if (what.collective == bench::Collective::broadcast) call_.input = call_.output;
    finish_trial();
  }

  void run() override { communicator_.run(call_); }

  std::string remark() override {
    TrialRemark remark;
    if (!tries()) return "";
    for (const auto& candidate : communicator_.explain(call_))
      if (candidate.measured_us > 0)
        remark.sides.insert(candidate.won ? remark.sides.begin() : remark.sides.end(),
                            {std::string(candidate.algorithm), candidate.measured_us});
    return to_text(remark);
  }

  void fill(const Case& what, Seat seat, const Buffers& buffers) override {
    what_ = from_options(what.options);
    if (is_default()) return Contender::fill(what, seat, buffers);
    fill_from(seat.rank, 0, buffers.input);
    if (what.in_place) fill_from(seat.rank, 0, buffers.output);
  }
  std::uint64_t count_wrong(const Case& what, Seat seat, const Buffers& buffers) override {
    if (is_default()) return Contender::count_wrong(what, seat, buffers);
    if (what.collective == bench::Collective::reduce && seat.rank != what.root) return 0;
    const auto element = size_of(what_.dtype);
    const std::size_t first =
        what.collective == bench::Collective::reduce_scatter
            ? static_cast<std::size_t>(seat.rank) * (buffers.output.size() / element)
            : 0;
    std::vector<std::byte> expected(buffers.output.size()), theirs(expected.size());
    fill_from(0, first, expected);
    const auto reducer = find_scalar_reducer(what_.dtype, what_.op);
    for (int rank = 1; rank < seat.ranks; ++rank) {
      fill_from(rank, first, theirs);
      reducer.pair(expected.data(), theirs.data(), expected.size() / element);
    }
    if (what_.op == ReduceOp::avg)
      divide(what_.dtype, expected.data(), expected.size() / element, seat.ranks);
    std::uint64_t wrong = 0;
    for (std::size_t at = 0; at + element <= expected.size(); at += element)
      wrong += std::memcmp(expected.data() + at, buffers.output.data() + at, element) != 0 ? 1 : 0;
    return wrong;
  }

 private:
  [[nodiscard]] bool tries() const { return trial_calls_ != 0 && running_.empty(); }
  // So that the winner is what is timed, however few calls a turn has.
  void finish_trial() {
    if (!tries() || !remark().empty()) return;
    // One more to hear the verdict, and one before the first if parts differ in size.
    const int turns = trial_calls_ > 0 ? trial_calls_ : kNeutralTrialCalls;
    for (int call = 0; call < turns + 2; ++call) run();
  }
  // Copies of f32 are checked by the loop itself; a reduction in another type is checked here.
  [[nodiscard]] bool is_default() const {
    return !reduces(call_.collective) || (what_.dtype == DType::f32 && what_.op == ReduceOp::sum);
  }
  [[nodiscard]] std::string algorithm_for(const BenchCase& what) const {
    return what.algorithm.empty() ? algorithm_ : what.algorithm;
  }
  void fill_from(int rank, std::size_t first, std::span<std::byte> bytes) const {
    const auto element = size_of(what_.dtype);
    for (std::size_t i = 0; i * element < bytes.size(); ++i)
      put(what_.dtype, bytes.data() + i * element, sample_value(rank, first + i, what_.op));
  }

  Communicator communicator_;
  std::string algorithm_, running_;
  bool shared_;
  int trial_calls_;
  bool installed_ = false;  // a schedule of the user's
  BenchCase what_;
  Call call_;
  Parts parts_;
  std::map<std::byte*, SharedBuffer> buffers_;
};

// The rank-th processor this process may use, or none; ranks share them evenly where they must.
cpu_set_t core_of(int rank) {
  cpu_set_t allowed, one;
  CPU_ZERO(&allowed);
  CPU_ZERO(&one);
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = 0, skip = rank % std::max(1, CPU_COUNT(&allowed)); cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && skip-- == 0) CPU_SET(cpu, &one);
  return one;
}

SegmentOptions segment_for(const BenchSetup& setup) {
  SegmentOptions options;
  options.slot_bytes = setup.slot_bytes;
  // A lane is all that can be on its way between two ranks.
  if (setup.emulation) options.lane_slot_bytes = std::size_t{1} << 18;
  return options;
}

/// Makes a choice look as it would over messages: sockets, or an MPI's.
class AsMessages final : public DecoratedMessages {
 public:
  AsMessages(const BenchSetup& setup, std::unique_ptr<Transport> inner)
      : DecoratedMessages(std::move(inner)),
        name_(setup.transport),
        slice_bytes_(name_ == "tcp" ? setup.tcp.slice.value_or(TcpOptions::kSliceOnOneHost) : 0) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] std::size_t slice_bytes() const noexcept override { return slice_bytes_; }
  std::unique_ptr<Transport> subset(std::span<const int> members, std::string_view label,
                                    Deadline deadline) override {
    return inner().subset(members, label, deadline);
  }

 private:
  std::string name_;
  std::size_t slice_bytes_;
};

/// Addresses go through the control segment, as those of the peers do.
class ControlStore final : public Store {
 public:
  explicit ControlStore(bench::Control& control) : control_(control) {}
  void set(std::string_view key, std::string_view value) override { control_.publish(key, value); }
  std::string get(std::string_view key, Deadline deadline) override {
    while (true) {
      if (auto value = control_.published(key)) return *value;
      if (Clock::now() > deadline)
        throw Error(Errc::timeout, fmt::format("nobody has set {}", key));
      std::this_thread::sleep_for(1ms);
    }
  }

 private:
  bench::Control& control_;
};

std::unique_ptr<Transport> join_bench(bench::Control& control, const BenchSetup& setup,
                                      const std::string& rendezvous) {
  const auto [rank, ranks] = control.seat();
  if (setup.transport == "tcp") {
    TcpJoin join;
    join.store = std::make_shared<ControlStore>(control);
    join.rank = rank;
    join.size = ranks;
    join.token = setup.token;
    join.options = setup.tcp;
    return join_tcp(join, Clock::now() + 30s);
  }
  ShmJoin join;
  join.rendezvous = rendezvous;
  join.rank = rank;
  join.size = ranks;
  join.pull = setup.pull;
  join.options = segment_for(setup);
  return join_shm(join, Clock::now() + 30s);
}

/// The same, with what writes the rank's trace if one is wanted.
Options recorded(const BenchSetup& setup, int rank, int ranks) {
  auto options = options_for(setup);
  if (!setup.trace.empty()) options.observer = trace_to(setup.trace, rank, ranks);
  return options;
}

}  // namespace

Options options_for(const BenchSetup& setup) {
  Options options{.timeout = 60s, .chunk_bytes = setup.chunk_bytes};
  options.trial_calls = setup.trial_calls;
  if (!setup.net.empty()) {
    options.model = read_text(setup.net);
    parse_network(options.model, setup.net);
  }
  return options;
}

std::unique_ptr<bench::Contender> make_contender(Communicator communicator,
                                                 const BenchSetup& setup) {
  if (!setup.schedule.empty()) communicator.install(parse_world(read_text(setup.schedule)));
  auto contender = std::make_unique<SinewContender>(std::move(communicator), setup);
  if (!setup.schedule.empty()) contender->set_installed();
  return contender;
}

void serve_as_sinew(bench::Control& control, std::unique_ptr<Transport> transport,
                    const BenchSetup& setup) {
  const auto options = recorded(setup, transport->rank(), transport->size());
  const auto contender = make_contender(Communicator(std::move(transport), options), setup);
  bench::serve(control, *contender);
}

std::string to_options(const BenchCase& what) {
  if (what.dtype == DType::f32 && what.op == ReduceOp::sum && what.algorithm.empty()) return "";
  return fmt::format("{} {} {}", name(what.dtype), name(what.op), what.algorithm);
}

BenchCase from_options(std::string_view options) {
  if (options.empty()) return {};
  const auto words = split(options, ' ');
  return {parse_dtype(words[0]), parse_reduce_op(words[1]),
          words.size() > 2 ? std::string(words[2]) : ""};
}

std::string to_text(const TrialRemark& remark) {
  std::string text;
  for (const auto& side : remark.sides)
    text += fmt::format("{}{} {:.3f}", text.empty() ? "" : " ", side.algorithm, side.measured_us);
  return text;
}

TrialRemark parse_trial_remark(std::string_view text) {
  TrialRemark remark;
  const auto words = split(text, ' ');
  for (std::size_t i = 0; i + 1 < words.size(); i += 2)
    remark.sides.push_back({std::string(words[i]), std::stod(std::string(words[i + 1]))});
  return remark;
}

Collective collective_of(bench::Collective collective) {
  if (collective == bench::Collective::allgatherv) return Collective::allgather;
  if (collective == bench::Collective::alltoallv) return Collective::alltoall;
  return parse_collective(bench::name(collective));
}

std::vector<Candidate> candidates_for(const bench::Case& what, int ranks, const BenchSetup& setup) {
  // A group of threads stands for the ranks: the choice depends on nothing that differs there.
  std::vector<int> domains;
  if (setup.transport == "shm" && setup.bind) {
    std::vector<cpu_set_t> cores;
    for (int rank = 0; rank < ranks; ++rank) cores.push_back(core_of(rank));
    domains = domains_of(cores);
  }
  const auto hub = LocalHub::make(ranks, segment_for(setup), 0, std::move(domains));
  auto transport = hub->join(0);
  if (setup.transport != "local") transport->board()->stand_for_processes();
  if (setup.transport == "tcp" || setup.transport == "mpi")
    transport = std::make_unique<AsMessages>(setup, std::move(transport));
  const Communicator one(setup.emulation.over(std::move(transport), setup.emulation.links()),
                         options_for(setup));
  Parts parts;
  return one.explain(call_for(what, 0, ranks, parts));
}

void bind_to_core(int rank) {
  const auto one = core_of(rank);
  if (CPU_COUNT(&one) == 1) sched_setaffinity(0, sizeof one, &one);
}

bench::Launcher connected_ranks(const BenchSetup& setup, const RankBody& body) {
  const auto live = [setup, body](bench::Control& control, std::unique_ptr<Transport> transport,
                                  const auto& links) {
    const auto [rank, ranks] = control.seat();
    body(control, Communicator(setup.emulation.over(std::move(transport), links),
                               recorded(setup, rank, ranks)));
  };
  if (setup.transport == "local")
    return [setup, live](const bench::Launch& launch, std::vector<pid_t>& children) {
      // The hub is made in the child, by the first thread to come.
      auto hub = std::make_shared<std::shared_ptr<LocalHub>>();
      auto once = std::make_shared<std::once_flag>();
      const auto links = setup.emulation.links();
      bench::fork_threads([=](bench::Control& control) {
        std::call_once(*once,
                       [&] { *hub = LocalHub::make(control.seat().ranks, segment_for(setup)); });
        live(control, (*hub)->join(control.seat().rank), links);
      })(launch, children);
    };
  return [setup, live](const bench::Launch& launch, std::vector<pid_t>& children) {
    const auto rendezvous = "sinew-bench" + launch.control;  // one segment a group, one name
    const auto links = setup.emulation.links();
    bench::fork_ranks([=](bench::Control& control) {
      if (setup.bind) bind_to_core(control.seat().rank);
      live(control, join_bench(control, setup, rendezvous), links);
    })(launch, children);
  };
}

bench::Launcher sinew_ranks(const BenchSetup& setup) {
  if (setup.transport == "mpi") return mpi_ranks(setup);
  return connected_ranks(setup, [setup](bench::Control& control, Communicator communicator) {
    bench::serve(control, *make_contender(std::move(communicator), setup));
  });
}

}  // namespace sinew
