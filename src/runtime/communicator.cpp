#include <sinew/communicator.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "runtime/communicator_state.hpp"
#include "runtime/shrink.hpp"
#include "transport/arena.hpp"

namespace sinew {

const std::span<const std::size_t> Communicator::kSomeCounts = [] {
  static const std::size_t none = 0;
  return std::span<const std::size_t>(&none, 0);
}();

Communicator::Communicator(std::unique_ptr<Transport> transport, Options options)
    : state_(std::make_unique<State>(std::move(transport), std::move(options))) {}
Communicator::Communicator(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const noexcept { return state_->transport->rank(); }
int Communicator::size() const noexcept { return state_->transport->size(); }
std::string_view Communicator::transport() const noexcept { return state_->transport->name(); }

Moved Communicator::last_moved() const noexcept {
  const auto* planned = state_->alone.planned;
  if (planned == nullptr) return {};
  return {planned->plan.bytes_sent(), planned->plan.bytes_received()};
}

void Communicator::run(const Call& call) {
  state_->planner.review_trials(state_->sequence);
  if (state_->repeats(call)) return state_->repeat(call);
  if (!state_->queue.empty() || state_->planner.trial(call) != nullptr) {
    wait(start(call));
    state_->alone.planned = state_->last_queued;  // nothing was started after it
    return;
  }
  state_->prepare(state_->alone, call);
  state_->run_alone();
}

Request Communicator::start(const Call& call) {
  const State::Visit visit(*state_);
  Active active(*state_->transport);
  state_->planner.review_trials(state_->sequence);
  if (const auto* const trial = state_->planner.trial(call))
    state_->prepare_tried(active, call, *trial);
  else
    state_->prepare(active, call);
  const auto id = active.tag.sequence;
  state_->enqueue(active);
  bool moved = false;
  state_->poll_queue(moved);
  return {Request::Kind::collective, id};
}

bool Communicator::test(Request request) {
  if (state_->broken) throw *state_->broken;
  const State::Visit visit(*state_);
  state_->poll_all();
  switch (request.kind) {
    case Request::Kind::collective:
      return state_->is_finished(request.id);
    case Request::Kind::message: {
      const auto is_done = [&] { return state_->mailbox.is_done(request.id); };
      if (!is_done())
        state_->fail_if_left(state_->mailbox.peer_of(request.id), is_done,
                             [&] { return state_->mailbox.describe(request.id); });
      return is_done();
    }
    default:
      return true;
  }
}

void Communicator::wait(Request request) {
  const State::Visit visit(*state_);
  if (request.kind == Request::Kind::collective)
    state_->wait_until([&] { return state_->is_finished(request.id); },
                       state_->limit_of(request.id),
                       [&] { return fmt::format("operation #{}", request.id); }, -1);
  if (request.kind == Request::Kind::message)
    state_->wait_until([&] { return state_->mailbox.is_done(request.id); }, state_->options.timeout,
                       [&] { return state_->mailbox.describe(request.id); },
                       state_->mailbox.peer_of(request.id));
}

void Communicator::wait_all(std::span<const Request> requests) {
  for (const auto& request : requests) wait(request);
}

Request Communicator::isend(std::span<const std::byte> data, int to, std::uint32_t tag) {
  if (state_->broken) throw *state_->broken;
  const State::Visit visit(*state_);
  const Request request{Request::Kind::message,
                        state_->or_poison([&] { return state_->mailbox.send(data, to, tag); })};
  state_->poll_all();
  return request;
}

Request Communicator::irecv(std::span<std::byte> data, int from, std::uint32_t tag) {
  if (state_->broken) throw *state_->broken;
  return {Request::Kind::message,
          state_->or_poison([&] { return state_->mailbox.recv(data, from, tag); })};
}

Request Communicator::irecv_any(std::span<std::byte> data, int& source, std::uint32_t tag) {
  if (state_->broken) throw *state_->broken;
  return {Request::Kind::message,
          state_->or_poison([&] { return state_->mailbox.recv_any(data, source, tag); })};
}

Communicator Communicator::split(int color, int key) {
  const std::int64_t mine[2] = {color, key};
  std::vector<std::int64_t> all(2 * parts());
  allgather(std::span<const std::int64_t>(mine), std::span(all));
  std::vector<int> members;
  for (int rank = 0; rank < size(); ++rank)
    if (all[2 * static_cast<std::size_t>(rank)] == color) members.push_back(rank);
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return all[2 * static_cast<std::size_t>(a) + 1] < all[2 * static_cast<std::size_t>(b) + 1];
  });
  const auto label = fmt::format("{}.{}", ++state_->subsets, color);
  try {
    return Communicator(state_->transport->subset(
                            members, label, state_->transport->now() + state_->options.timeout),
                        state_->options);
  } catch (const Error& error) {
    if (error.code() != Errc::peer_lost) throw;
    state_->broken = Error(error.code(), fmt::format("rank {}, split: {}", rank(), error.what()),
                           {.rank = rank(), .peer = error.context().peer, .operation = "split"});
    throw *state_->broken;
  }
}

Communicator Communicator::shrink(std::chrono::nanoseconds patience) {
  constexpr std::chrono::nanoseconds kAfterTimeout = std::chrono::seconds(2);
  auto& old = *state_;
  if (!old.broken) {
    const auto why = fmt::format("rank {} asked for a new group (shrink)", rank());
    old.transport->poison({Errc::peer_lost, rank(), why});
    old.broken = Error(Errc::peer_lost, why, {.rank = rank(), .peer = rank()});
  }
  // Whoever a timeout was about has been waited for already.
  if (patience.count() <= 0)
    patience = old.broken->code() == Errc::timeout ? std::min(old.options.timeout, kAfterTimeout)
                                                   : old.options.timeout;
  auto survivors = sinew::shrink(*old.transport, {old.epoch + 1, patience});
  auto next = std::make_unique<State>(std::move(survivors.transport), old.options);
  next->epoch = old.epoch + 1;
  return Communicator(std::move(next));
}
std::uint32_t Communicator::epoch() const noexcept { return state_->epoch; }

SharedBuffer Communicator::alloc_shared(std::size_t bytes) {
  Arena* arena = state_->transport->arena();
  if (arena == nullptr)
    throw Error(Errc::unsupported, fmt::format("ranks over {} share no memory", transport()));
  SharedBuffer buffer;
  buffer.begin_ = arena->allocate(bytes);
  buffer.arena_ = arena;
  buffer.bytes_ = bytes;
  return buffer;
}

void Communicator::install(const World& world) {
  state_->alone.planned = nullptr;  // the planner forgets plans
  state_->planner.install(world);
}
std::vector<Candidate> Communicator::explain(const Call& call) const {
  return state_->planner.explain(call);
}
void Communicator::observe(Observer* observer) noexcept { state_->observer = observer; }

}  // namespace sinew
