#include "support/seeded_world.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "runtime/run.hpp"
#include "schedule/form.hpp"
#include "transport/decorated.hpp"
#include "transport/local/local.hpp"

namespace sinew::test {
namespace {

// What is between the ranks, for one run.
struct Network {
  struct Message {
    const Transfer* sender;
    std::vector<std::byte> copy;          // buffered
    std::span<const std::byte> original;  // synchronous: read when it is received
    bool taken = false;
  };
  using Lane = std::tuple<int, int, int>;
  explicit Network(Sends mode, unsigned seed) : sends(mode), random(seed) {}

  Sends sends;
  std::mt19937 random;
  bool stalls = true;  // now and then an attempt does nothing
  std::uint64_t activity = 0;
  std::map<Lane, std::deque<Message>> lanes;
  std::map<std::pair<Lane, bool>, const Transfer*> stalled;  // those behind it wait

  bool stall(const Lane& lane, bool receives, const Transfer& transfer) {
    auto& first = stalled[{lane, receives}];
    if (first != nullptr && first != &transfer) return true;
    first = stalls && random() % 4 == 0 ? &transfer : nullptr;
    return first != nullptr;
  }
};

// One rank's place: lanes of the network, board of the transport inside.
class Seat final : public Decorated {
 public:
  using Decorated::Decorated;
  void plug_into(Network* network) { network_ = network; }

  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override {
    const Network::Lane key{rank(), transfer.peer, transfer.channel};
    if (network_->stall(key, false, transfer)) return Progress::pending;
    auto& lane = network_->lanes[key];
    const auto at = std::find_if(lane.begin(), lane.end(),
                                 [&](const auto& m) { return m.sender == &transfer; });
    if (at != lane.end()) {
      if (!at->taken) return Progress::pending;
      lane.erase(at);
      return Progress::done;
    }
    ++network_->activity;
    if (network_->sends == Sends::synchronous) {
      lane.push_back({&transfer, {}, data});
      return Progress::pending;
    }
    lane.push_back({nullptr, {data.begin(), data.end()}, {}});
    return Progress::done;
  }
  Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept override {
    return receive(transfer, data, [&](std::span<const std::byte> from) {
      std::copy(from.begin(), from.end(), data.begin());
    });
  }
  Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                       const Reducer& reducer) noexcept override {
    return receive(transfer, data, [&](std::span<const std::byte> from) {
      reducer.pair(data.data(), from.data(), data.size() / reducer.element_bytes);
    });
  }
  std::unique_ptr<Transport> subset(std::span<const int>, std::string_view, Deadline) override {
    return nullptr;
  }

 private:
  template <class Consume>
  Progress receive(Transfer& transfer, std::span<std::byte> data, Consume consume) noexcept {
    const Network::Lane key{transfer.peer, rank(), transfer.channel};
    if (network_->stall(key, true, transfer)) return Progress::pending;
    auto& lane = network_->lanes[key];
    const auto at = std::find_if(lane.begin(), lane.end(), [](const auto& m) { return !m.taken; });
    if (at == lane.end()) {
      network_->stalled[{key, true}] = &transfer;  // what comes next is for this one
      return Progress::pending;
    }
    const auto from = at->sender == nullptr ? std::span<const std::byte>(at->copy) : at->original;
    if (from.size() != data.size()) return Progress::failed;
    consume(from);
    ++network_->activity;
    at->taken = true;
    if (at->sender == nullptr) lane.erase(at);
    return Progress::done;
  }

  Network* network_ = nullptr;
};

ChunkMap even_map(std::uint32_t chunks, std::size_t chunk_bytes) {
  ChunkMap map;
  for (std::uint32_t i = 1; i <= chunks; ++i) map.offsets.push_back(i * chunk_bytes);
  return map;
}

struct Rank {
  explicit Rank(Transport& seat) : run(seat) {}
  std::vector<std::uint64_t> input, output, result;
  std::unique_ptr<Plan> plan;
  Run run;
  bool begun = false, finished = false;
};

}  // namespace

std::string_view name(Ending ending) {
  constexpr std::string_view kNames[] = {"right", "wrong data", "deadlock", "error"};
  return kNames[static_cast<std::size_t>(ending)];
}

SeededWorld::SeededWorld(const World& world, std::size_t chunk_elements, bool posts_all)
    : world_(world), chunk_elements_(chunk_elements), posts_all_(posts_all) {
  std::mt19937_64 random(42);
  for (const auto& schedule : world.ranks) {
    auto& input = inputs_.emplace_back(schedule.chunks[0] * chunk_elements);
    for (auto& number : input) number = random();
  }
}
SeededWorld::~SeededWorld() = default;

bool SeededWorld::has_output(int rank) const {
  const bool root_only =
      world_.collective == Collective::reduce || world_.collective == Collective::gather;
  return rank == world_.root || !root_only;
}

std::vector<std::uint64_t> SeededWorld::expected(int rank) const {
  const auto& schedule = world_.ranks[static_cast<std::size_t>(rank)];
  const auto me = static_cast<std::size_t>(rank), root = static_cast<std::size_t>(world_.root);
  std::vector<std::uint64_t> result(schedule.chunks[1] * chunk_elements_);
  const auto sum = [&](std::size_t at) {
    std::uint64_t total = 0;
    for (const auto& input : inputs_) total += input[at];
    return total;
  };
  const auto part = result.size() / inputs_.size();
  for (std::size_t i = 0; i < result.size(); ++i) switch (world_.collective) {
      case Collective::allreduce:
      case Collective::reduce:
        result[i] = sum(i);
        break;
      case Collective::broadcast:
        result[i] = inputs_[root][i];
        break;
      case Collective::allgather:
      case Collective::gather:
        result[i] = inputs_[i / part][i % part];
        break;
      case Collective::reduce_scatter:
        result[i] = sum(me * result.size() + i);
        break;
      case Collective::scatter:
        result[i] = inputs_[root][me * result.size() + i];
        break;
      case Collective::alltoall:
        result[i] = inputs_[i / part][me * part + i % part];
        break;
      case Collective::barrier:
        break;
    }
  return result;
}

Ending SeededWorld::run(Sends sends, unsigned seed) {
  const auto size = world_.ranks.size();
  if (!hub_) {
    hub_ = LocalHub::make(static_cast<int>(size),
                          {.slot_bytes = 1024, .lane_slot_bytes = 64, .arena_bytes = 4096});
    seats_.clear();
    for (std::size_t rank = 0; rank < size; ++rank)
      seats_.push_back(std::make_unique<Seat>(hub_->join(static_cast<int>(rank))));
  }
  Network network(sends, seed);
  for (auto& seat : seats_) static_cast<Seat&>(*seat).plug_into(&network);
  bool on_board = false;
  for (const auto& schedule : world_.ranks)
    for (const auto& step : schedule.steps) on_board |= is_board_op(step.op);

  std::vector<Rank> ranks;
  for (std::size_t r = 0; r < size; ++r) {
    ranks.emplace_back(*seats_[r]);
    const auto& schedule = world_.ranks[r];
    const auto bytes = chunk_elements_ * sizeof(std::uint64_t);
    Binding binding;
    binding.input = even_map(schedule.chunks[0], bytes);
    binding.output = even_map(schedule.chunks[1], bytes);
    binding.dtype = DType::u64;
    binding.op = ReduceOp::sum;
    binding.slot_bytes = 1024;
    binding.slice_bytes = 128;
    binding.on_board = on_board;
    binding.posts_all = on_board && posts_all_;
    binding.world = &world_;
    ranks[r].input = inputs_[r];
    ranks[r].output.assign(schedule.chunks[1] * chunk_elements_, 0xBAD0BAD0BAD0BAD0);
    ranks[r].plan = std::make_unique<Plan>(schedule, std::move(binding));
    ranks[r].run.set(*ranks[r].plan, reinterpret_cast<const std::byte*>(ranks[r].input.data()),
                     reinterpret_cast<std::byte*>(ranks[r].output.data()));
  }
  const OpTag tag{++sequence_, 0xABCD};
  const OpDescriptor descriptor;
  std::size_t left = size;
  auto ending = Ending::right;
  // One rank takes a turn. True if anything moved anywhere.
  const auto take_turn = [&](std::size_t r) {
    auto& rank = ranks[r];
    if (rank.finished) return false;
    const auto before = network.activity;
    const bool fresh = !rank.begun;
    if (fresh) {
      rank.begun = true;
      rank.run.begin(tag, descriptor, 0);
    }
    const auto progress = rank.run.poll();
    if (progress == Progress::failed) ending = Ending::failed;
    if (progress == Progress::done) {
      rank.finished = true;
      --left;
      rank.result = rank.output;
      // From here on the buffers are the caller's again.
      std::fill(rank.input.begin(), rank.input.end(), 0xDEADDEADDEADDEAD);
      std::fill(rank.output.begin(), rank.output.end(), 0xDEADDEADDEADDEAD);
      if (world_.collective == Collective::barrier &&
          !std::all_of(ranks.begin(), ranks.end(), [](const Rank& other) { return other.begun; }))
        ending = Ending::wrong;
    }
    return fresh || rank.run.moved() || network.activity != before || progress == Progress::done;
  };

  std::size_t idle = 0;
  while (left > 0 && ending == Ending::right) {
    idle = take_turn(network.random() % size) ? 0 : idle + 1;
    if (idle < 10 * size) continue;
    // Nothing for long: does anything move when nobody stalls?
    network.stalls = false;
    bool moved = false;
    for (std::size_t r = 0; r < 2 * size; ++r) moved |= take_turn(r % size);
    network.stalls = true;
    if (!moved && left > 0 && ending == Ending::right) ending = Ending::stuck;
    idle = 0;
  }
  for (std::size_t r = 0; r < size && ending == Ending::right; ++r)
    if (has_output(static_cast<int>(r)) && ranks[r].result != expected(static_cast<int>(r)))
      ending = Ending::wrong;
  if (ending != Ending::right) hub_.reset();
  return ending;
}

}  // namespace sinew::test
