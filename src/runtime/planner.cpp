#include "runtime/planner.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include <sinew/verify.hpp>
#include "base/text.hpp"
#include "runtime/surroundings.hpp"
#include "schedule/form.hpp"
#include "transport/board.hpp"
#include "transport/descriptor.hpp"
#include "transport/shared_transport.hpp"

namespace sinew {
namespace {

constexpr std::size_t kMostPlans = 256;

bool is_ragged(const Call& call) { return call.counts.data() != nullptr; }

std::uint64_t hash_counts(std::span<const std::size_t> counts) {
  return counts.empty() ? 1 : XXH3_64bits(counts.data(), counts.size_bytes()) | 1;
}

// Elements in the large buffer, which is what costs are estimated from.
std::size_t large_elements(const Call& call, int size) {
  switch (call.collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::broadcast:
      return call.count;
    case Collective::barrier:
      return 0;
    default:
      break;
  }
  if (!is_ragged(call)) return call.count * static_cast<std::size_t>(size);
  std::size_t total = 0;
  for (const auto count : call.counts) total += count;
  return total;
}

// Elements of the input and output buffers, as far as this rank knows.
std::pair<std::size_t, std::size_t> buffer_elements(const Call& call, int size) {
  const auto sum = [](std::span<const std::size_t> counts) {
    return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  };
  const auto all = is_ragged(call) ? sum(call.counts) : call.count * static_cast<std::size_t>(size);
  switch (call.collective) {
    case Collective::allgather:
    case Collective::gather:
      return {call.count, all};
    case Collective::reduce_scatter:
    case Collective::scatter:
      return {all, call.count};
    case Collective::alltoall:
      return {all, is_ragged(call) ? sum(call.recv_counts) : all};
    default:
      return {call.count, call.count};
  }
}

bool uses(const World& world, Op op) {
  return std::any_of(world.ranks.begin(), world.ranks.end(), [=](const Schedule& schedule) {
    return std::any_of(schedule.steps.begin(), schedule.steps.end(),
                       [=](const Step& step) { return step.op == op; });
  });
}

bool uses_board(const World& world) {
  return uses(world, Op::publish) || uses(world, Op::gather_copy) ||
         uses(world, Op::gather_reduce) || uses(world, Op::gather_reduce_all);
}

// Whether there is memory that every group of the schedule shares.
bool reaches(const Transport& transport, const Schedule& schedule) {
  const auto can = transport.capabilities();
  const auto node_of = transport.node_of();
  if (can.across_nodes || node_of.empty() || !can.board) return can.board;
  const auto node = [&](int rank) { return node_of[static_cast<std::size_t>(rank)]; };
  return std::all_of(schedule.steps.begin(), schedule.steps.end(), [&](const Step& step) {
    const auto group = is_board_op(step.op) ? members(schedule, step) : std::vector<int>{};
    return std::all_of(group.begin(), group.end(),
                       [&](int member) { return node(member) == node(schedule.rank); });
  });
}

constexpr int kUnsaid = -1;

// Alone there is nothing to choose, and what must give the same bits every time must not depend on
// how long things took. Unasked, only ranks that share memory try anything: what carries messages
// is known better than what a cache does with slots.
int trial_calls_for(const Transport& transport, const Options& options) {
  const bool unasked = options.trial_calls == kUnsaid;
  const int calls = unasked ? (transport.capabilities().board ? kNeutralTrialCalls : 0)
                            : checked_trial_calls(options.trial_calls, "Options::trial_calls");
  return transport.size() > 1 && !options.deterministic ? calls : 0;
}

// Ranks of this one's node that receive a result, itself included. Without memory in common nobody
// is known to be near.
int neighbours_of(const Transport& transport, Collective collective) {
  const bool to_root = collective == Collective::reduce || collective == Collective::gather;
  if (to_root || !transport.capabilities().board) return 1;
  const auto node_of = transport.node_of();
  if (node_of.empty()) return transport.size();
  return static_cast<int>(std::count(node_of.begin(), node_of.end(),
                                     node_of[static_cast<std::size_t>(transport.rank())]));
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

}  // namespace

Planner::Planner(Transport& transport, const Options& options)
    : transport_(transport),
      options_(options),
      surroundings_(surroundings_of(transport, options)),
      trial_calls_(trial_calls_for(transport, options)),
      tries_any_(options.trial_calls != kUnsaid) {}

std::size_t Planner::KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t hash = key.count * 0x9E3779B97F4A7C15U;
  hash ^= key.counts + key.algorithm * 31 + static_cast<std::uint64_t>(key.root) * 7;
  hash ^= static_cast<std::uint64_t>(key.collective) << 8 ^
          static_cast<std::uint64_t>(key.dtype) << 16 ^ static_cast<std::uint64_t>(key.op) << 24 ^
          (key.in_place ? 1U << 30 : 0) ^ (key.shared ? 1U << 31 : 0);
  hash ^= reinterpret_cast<std::uintptr_t>(key.tried);
  return hash ^ hash >> 29;
}

std::string_view Planner::wanted_algorithm(const Call& call) const noexcept {
  if (!call.options.algorithm.empty()) return call.options.algorithm;
  if (options_.algorithm.empty()) return {};
  // A default for all collectives counts only where the collective has it.
  for (const auto& algorithm : algorithms())
    if (algorithm.collective == call.collective && algorithm.name == options_.algorithm)
      return options_.algorithm;
  return installed_.contains({call.collective, options_.algorithm}) ? options_.algorithm
                                                                    : std::string_view{};
}

Planner::Key Planner::key_of(const Call& call) const noexcept {
  Key key{call.collective, call.dtype, call.op, false, false, call.root, call.count, 0, 0, nullptr};
  key.in_place = call.input == call.output;
  if (is_ragged(call)) key.counts = hash_counts(call.counts) ^ (hash_counts(call.recv_counts) << 1);
  if (counts_are_private(call))
    key.counts ^= static_cast<std::uint64_t>(std::bit_width(call.options.likely_bytes));
  if (!call.options.algorithm.empty()) key.algorithm = algorithm_key(call.options.algorithm);
  if (!key.in_place && call.input != nullptr && call.output != nullptr) {
    const auto [in, out] = buffer_elements(call, transport_.size());
    key.in_place =
        overlap(call.input, in * size_of(call.dtype), call.output, out * size_of(call.dtype));
  }
  if (call.collective == Collective::allreduce)
    if (const Board* board = transport_.board()) {
      const auto bytes = call.count * size_of(call.dtype);
      key.shared = board->in_arena(call.input, bytes) && board->in_arena(call.output, bytes);
    }
  return key;
}

Planned& Planner::find(const Call& call) {
  last_ = nullptr;
  auto key = key_of(call);
  if (trial_calls_ > 0)
    if (const auto* const trial = known_trial(call)) key.tried = trial->winner();
  auto& planned = planned_for(key, call);
  if (!is_ragged(call)) {
    last_call_ = call;
    last_algorithm_ = call.options.algorithm;
    last_ = &planned;
  }
  return planned;
}

Planned& Planner::planned_for(const Key& key, const Call& call) {
  const auto at = plans_.find(key);
  return at != plans_.end() ? *at->second : make(key, call);
}

void Planner::check(const Call& call) const {
  const int size = transport_.size();
  const auto refuse = [&](const std::string& why) {
    throw Error(Errc::invalid_argument,
                fmt::format("rank {}, {}: {}", transport_.rank(), name(call.collective), why),
                {.rank = transport_.rank(), .operation = std::string(name(call.collective))});
  };
  if (has_root(call.collective) && (call.root < 0 || call.root >= size))
    refuse(fmt::format("root {} is not a rank of {}", call.root, size));
  if (reduces(call.collective) && !supports(call.dtype, call.op))
    throw Error(Errc::unsupported, fmt::format("{} has no {}: bitwise operations need integers",
                                               name(call.dtype), name(call.op)));
  const bool knows_all = !counts_are_private(call) || call.collective == Collective::alltoall ||
                         transport_.rank() == call.root;
  if (is_ragged(call) && knows_all && call.counts.size() != static_cast<std::size_t>(size))
    refuse(fmt::format("{} counts for {} ranks", call.counts.size(), size));
  if (is_ragged(call) && call.collective == Collective::alltoall &&
      call.recv_counts.size() != call.counts.size())
    refuse(fmt::format("{} counts to send but {} to receive", call.counts.size(),
                       call.recv_counts.size()));
}

// Where a rank knows no parts but its own, sizes cannot be part of what all ranks agree on.
bool Planner::counts_are_private(const Call& call) noexcept {
  return is_ragged(call) &&
         (call.collective == Collective::scatter || call.collective == Collective::gather ||
          call.collective == Collective::alltoall);
}

// Private counts must not steer the choice: ranks would choose apart.
std::size_t Planner::large_bytes(const Call& call) const noexcept {
  if (counts_are_private(call)) return std::bit_floor(call.options.likely_bytes);
  return large_elements(call, transport_.size()) * size_of(call.dtype);
}

Place Planner::place_for(const Algorithm& algorithm, const Call& call) const {
  return {transport_.rank(), transport_.size(), call.root,
          segments_for(algorithm, large_bytes(call), options_.chunk_bytes), transport_.node_of()};
}

std::string_view Planner::refusal(const Algorithm& algorithm, const Call& call, bool shared) const {
  auto can = transport_.capabilities();
  can.shared_buffers = shared;
  // A thread that gives up may free what another is reading, and no kernel stands between them.
  if (wanted_algorithm(call).empty() && can.pull && transport_.board()->is_one_process())
    can.pull = false;
  if (!algorithm.fits(place_for(algorithm, call), can)) return "does not fit these ranks";
  if (options_.deterministic && !algorithm.traits.rank_order)
    return "does not combine in rank order";
  if (counts_are_private(call) && !algorithm.traits.ragged) return "needs parts of equal size";
  return {};
}

// What fits only because there are several nodes is worth a thought where those have several ranks.
bool Planner::lacks_levels(const Algorithm& algorithm, const Call& call) const {
  auto flat = place_for(algorithm, call);
  flat.node_of = {};
  return !algorithm.fits(flat, {true, true, true, true}) && !has_levels(transport_.node_of());
}

double Planner::predicted_us(const Algorithm& algorithm, const Call& call) const {
  const auto bytes = static_cast<double>(large_bytes(call));
  return call_ps(algorithm, place_for(algorithm, call), bytes, surroundings_) / 1e6;
}

// Every algorithm for a call, the fastest first, those that do not fit last.
std::vector<Candidate> Planner::predicted_best(const Call& call, bool shared) const {
  std::vector<Candidate> candidates;
  for (const auto& algorithm : algorithms()) {
    if (algorithm.collective != call.collective) continue;
    auto why = refusal(algorithm, call, shared);
    if (why.empty() && lacks_levels(algorithm, call)) why = "pays with two nodes of two ranks";
    candidates.push_back({algorithm.name, why.empty() ? predicted_us(algorithm, call) : 0, why});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
                     return a.predicted_us < b.predicted_us;
                   });
  return candidates;
}

std::vector<Candidate> Planner::explain(const Call& call) const {
  check(call);
  auto candidates = predicted_best(call, key_of(call).shared);
  const auto* const trial = known_trial(call);
  for (auto& candidate : candidates) {
    if (trial == nullptr) break;
    candidate.measured_us = trial->measured_us(candidate.algorithm);
    candidate.won = candidate.measured_us > 0 && trial->winner()->name == candidate.algorithm;
  }
  return candidates;
}

const Algorithm& Planner::choose(const Call& call) const {
  if (const auto wanted = wanted_algorithm(call); !wanted.empty()) {
    const auto& algorithm = find_algorithm(call.collective, wanted);
    if (const auto why = refusal(algorithm, call, key_of(call).shared); !why.empty())
      throw Error(Errc::unsupported,
                  fmt::format("{} {} {} ({} ranks over {})", name(call.collective), wanted, why,
                              transport_.size(), transport_.name()));
    return algorithm;
  }
  const auto candidates = predicted_best(call, key_of(call).shared);
  if (candidates.empty() || !candidates.front().refused.empty())
    throw Error(Errc::unsupported,
                fmt::format("no algorithm for this {} fits", name(call.collective)));
  return find_algorithm(call.collective, candidates.front().algorithm);
}

Binding Planner::bind(const Schedule& schedule, const Call& call) const {
  const auto element = size_of(call.dtype);
  const auto size = static_cast<std::size_t>(transport_.size());
  const auto in_chunks = schedule.chunks[0], out_chunks = schedule.chunks[1];
  Binding binding;
  binding.dtype = call.dtype;
  binding.op = call.op;
  binding.divisor = transport_.size();
  binding.crowded = transport_.size() > transport_.cores();
  binding.neighbours = neighbours_of(transport_, call.collective);
  binding.has_output = call.collective != Collective::reduce || transport_.rank() == call.root;
  if (const Board* board = transport_.board()) binding.slot_bytes = board->slot_bytes();
  if (!counts_are_private(call)) binding.slice_bytes = transport_.slice_bytes();
  binding.tells_places = schedule.by_reference && counts_are_private(call);
  // Parts nobody told us about are empty; schedules for such calls do not touch them.
  std::vector<std::size_t> parts(size, is_ragged(call) ? 0 : call.count), one{call.count};
  if (is_ragged(call) && call.counts.size() == size)
    parts.assign(call.counts.begin(), call.counts.end());
  switch (call.collective) {
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::broadcast:
      binding.input = binding.output = map_parts(one, in_chunks, element);
      break;
    case Collective::allgather:
    case Collective::gather:
      binding.input = map_parts(one, in_chunks, element);
      binding.output = map_parts(parts, in_chunks, element);
      break;
    case Collective::reduce_scatter:
    case Collective::scatter:
      binding.input = map_parts(parts, out_chunks, element);
      binding.output = map_parts(one, out_chunks, element);
      break;
    case Collective::alltoall: {
      const auto each = in_chunks / static_cast<std::uint32_t>(size);
      binding.input = map_parts(parts, each, element);
      if (is_ragged(call)) parts.assign(call.recv_counts.begin(), call.recv_counts.end());
      binding.output = map_parts(parts, each, element);
      break;
    }
    case Collective::barrier:
      break;
  }
  return binding;
}

void Planner::forget_plans() {
  last_ = nullptr;
  std::erase_if(plans_, [](const auto& entry) { return entry.second->users == 0; });
}

// What ranks compare about calls, whatever they are run by.
OpDescriptor Planner::kind_of(const Call& call) noexcept {
  OpDescriptor kind{call.collective,
                    call.dtype,
                    reduces(call.collective) ? call.op : ReduceOp::sum,
                    has_root(call.collective) ? call.root : 0,
                    call.count,
                    0,
                    0};
  if (counts_are_private(call))
    kind.count = kUneven | static_cast<std::uint64_t>(std::bit_width(call.options.likely_bytes));
  else if (is_ragged(call))
    kind.count = kUneven | hash_counts(call.counts);
  if (call.collective == Collective::barrier) kind.dtype = DType::f32;
  return kind;
}

// Kept, because plans for uneven parts are made again and again.
const World& Planner::world_of(const Algorithm& algorithm, int root) {
  const auto at = worlds_.find({&algorithm, root});
  if (at != worlds_.end()) return at->second;
  return worlds_
      .emplace(std::pair(&algorithm, root), make_world(algorithm, transport_.size(), root))
      .first->second;
}

Planned& Planner::make(const Key& key, const Call& call) {
  check(call);
  if (plans_.size() >= kMostPlans) forget_plans();
  const auto wanted = wanted_algorithm(call);
  const auto own = installed_.find({call.collective, std::string(wanted)});
  Schedule schedule;
  const World* world = nullptr;  // everybody's, where data is read by reference
  bool works_in_place = true;
  if (own != installed_.end()) {
    if (has_root(call.collective) && own->second.root != call.root)
      throw Error(Errc::unsupported, fmt::format("{} {} was installed for root {}",
                                                 name(call.collective), wanted, own->second.root));
    if (options_.deterministic && !verify(own->second).rank_order)
      throw Error(Errc::unsupported, fmt::format("{} {} does not combine in rank order",
                                                 name(call.collective), wanted));
    if (counts_are_private(call))
      throw Error(Errc::unsupported,
                  fmt::format("{} {} was installed, and so needs parts of equal size",
                              name(call.collective), wanted));
    if (is_ragged(call) && own->second.ranks.front().by_reference)
      throw Error(Errc::unsupported,
                  fmt::format("{} {} reads other ranks' memory, and so needs parts of equal size",
                              name(call.collective), wanted));
    if (!key.shared && uses(own->second, Op::gather_reduce_all))
      throw Error(Errc::unsupported, fmt::format("{} {} needs buffers of alloc_shared()",
                                                 name(call.collective), wanted));
    schedule = own->second.ranks[static_cast<std::size_t>(transport_.rank())];
    works_in_place = verify(own->second, {.placement = Placement::in_place}).ok();
    if (schedule.by_reference) world = &own->second;
  } else {
    const auto& algorithm = key.tried != nullptr ? *key.tried : choose(call);
    schedule = algorithm.make(place_for(algorithm, call));
    works_in_place = algorithm.traits.in_place;
    if (schedule.by_reference) world = &world_of(algorithm, call.root);
  }
  auto descriptor = kind_of(call);
  descriptor.algorithm = algorithm_key(schedule.name);
  auto binding = bind(schedule, call);
  binding.staged = key.in_place && !works_in_place;
  binding.over_input = !binding.staged && call.input == call.output;
  binding.world = world;
  if (own != installed_.end()) {
    binding.on_board = binding.posts_all = uses_board(own->second);
    binding.divides_folds = false;  // nobody knows what else it does with them
  }
  auto planned = std::make_unique<Planned>(
      Planned{Plan(std::move(schedule), std::move(binding)), descriptor, hash_of(descriptor), 0});
  return *plans_.insert_or_assign(key, std::move(planned)).first->second;
}

void Planner::install(const World& world) {
  if (static_cast<int>(world.ranks.size()) != transport_.size())
    throw Error(Errc::invalid_argument, fmt::format("a schedule for {} ranks, but there are {}",
                                                    world.ranks.size(), transport_.size()));
  for (const auto sends : {Sends::buffered, Sends::synchronous}) {
    const auto verdict = verify(world, {.sends = sends});
    if (!verdict.ok())
      throw Error(Errc::not_verified, fmt::format("{} {} is refused: {}", name(world.collective),
                                                  world.ranks.front().name, verdict.fault->why));
  }
  const auto& schedule = world.ranks[static_cast<std::size_t>(transport_.rank())];
  if (uses_board(world) && !reaches(transport_, schedule))
    throw Error(Errc::unsupported, fmt::format("{} needs shared memory", schedule.name));
  if (schedule.by_reference && !transport_.capabilities().pull)
    throw Error(Errc::unsupported,
                fmt::format("{} reads other ranks' memory, which is not allowed here (see `sinew "
                            "doctor`)",
                            schedule.name));
  for (const auto& step : schedule.steps)
    if (step.channel >= kMessageChannel)
      throw Error(Errc::unsupported, fmt::format("{} uses channel {}; there are {}", schedule.name,
                                                 step.channel, kMessageChannel));
  forget_plans();  // some may be of an older world of that name
  installed_.insert_or_assign({world.collective, schedule.name}, world);
}

}  // namespace sinew
