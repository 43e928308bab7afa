#include <sinew/communicator.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>

#include "runtime/fingerprint.hpp"
#include "runtime/mailbox.hpp"
#include "runtime/planner.hpp"
#include "runtime/run.hpp"
#include "runtime/shrink.hpp"
#include "transport/arena.hpp"
#include "transport/shared_transport.hpp"

namespace sinew {
namespace {

std::uint32_t next_communicator_number() {
  static std::atomic<std::uint32_t> count{0};
  return ++count;
}

}  // namespace

const std::span<const std::size_t> Communicator::kSomeCounts = [] {
  static const std::size_t none = 0;
  return std::span<const std::size_t>(&none, 0);
}();

// One collective that has been started: waiting for its turn, or running.
struct Active {
  explicit Active(Transport& transport) : run(transport) {}
  Planned* planned = nullptr;
  Run run;
  std::uint64_t user_tag = 0;
  OpTag tag;
  std::chrono::nanoseconds limit{};
  Deadline deadline{};
  Clock::time_point begun{};
  Clock::time_point warned{};  // or when to, if not yet

  [[nodiscard]] OpDescriptor descriptor() const {
    auto descriptor = planned->descriptor;
    descriptor.tag = user_tag;
    return descriptor;
  }
};

struct Communicator::State {
  std::unique_ptr<Transport> transport;
  Options options;
  Planner planner;
  Mailbox mailbox;
  Observer* observer;
  std::uint32_t number = next_communicator_number();
  std::uint32_t sequence = 0;
  std::uint32_t fingerprint = 0;
  std::uint32_t finished = 0;  // sequence of the last operation that is done
  std::uint32_t subsets = 0;
  std::uint32_t epoch = 0;
  std::deque<Active> queue;  // started and not done; only the first runs
  Active alone;              // a blocking call with nothing queued
  std::optional<Error> broken;

  State(std::unique_ptr<Transport> t, Options o)
      : transport(std::move(t)),
        options(std::move(o)),
        planner(*transport, options),
        mailbox(*transport),
        observer(options.observer.get()),
        alone(*transport) {}

  // Others may be waiting for what this rank has started and will not finish.
  ~State() {
    if (broken || queue.empty()) return;
    const auto& active = queue.front();
    transport->poison({Errc::peer_lost, transport->rank(),
                       fmt::format("rank {} left in the middle of {} #{}", transport->rank(),
                                   describe(active.descriptor()), active.tag.sequence)});
  }

  void prepare(Active& active, const Call& call) {
    if (broken) throw *broken;
    alone.planned = nullptr;  // the planner may forget it
    Planned& planned = planner.plan(call);
    active.planned = &planned;
    ++planned.users;
    active.limit = call.options.timeout.count() > 0 ? call.options.timeout : options.timeout;
    active.user_tag = call.options.tag;
    fingerprint = next_fingerprint(fingerprint, planned.hash, active.user_tag);
    active.tag = {++sequence, fingerprint};
    active.run.set(planned.plan, static_cast<const std::byte*>(call.input),
                   static_cast<std::byte*>(call.output));
  }

  void begin(Active& active) {
    active.planned->descriptor.tag = active.user_tag;
    active.run.begin(active.tag, active.planned->descriptor, active.planned->hash);
    if (observer != nullptr) [[unlikely]]
      active.run.observe(*observer, event_of(active));
  }

  [[nodiscard]] Event event_of(const Active& active) const {
    const auto& binding = active.planned->plan.binding();
    Event event;
    event.operation = static_cast<std::uint8_t>(active.planned->descriptor.collective);
    event.dtype = static_cast<std::uint8_t>(active.planned->descriptor.dtype);
    event.communicator = number;
    event.sequence = active.tag.sequence;
    event.bytes = std::max(binding.input.total(), binding.output.total());
    event.algorithm = active.planned->descriptor.algorithm;
    event.tag = active.user_tag;
    return event;
  }

  // The operation whose turn it is, if any.
  Progress poll_queue(bool& moved) {
    while (!queue.empty()) {
      const auto progress = queue.front().run.poll();
      moved |= queue.front().run.moved();
      if (progress == Progress::failed) fail(queue.front());
      if (progress == Progress::pending) return progress;
      finished = queue.front().tag.sequence;
      --queue.front().planned->users;
      queue.pop_front();
      if (!queue.empty()) begin(queue.front());
    }
    return Progress::done;
  }

  bool poll_all() {
    bool moved = false;
    poll_queue(moved);
    poll_messages(moved);
    return moved;
  }

  void poll_messages(bool& moved) {
    if (!mailbox.busy()) return;
    const auto progress = or_poison([&] { return mailbox.poll(moved); });
    if (progress == Progress::failed) fail_message();
  }

  // A message that does not fit its receive leaves both ends in the middle of it.
  template <class Action>
  std::invoke_result_t<Action> or_poison(Action action) {
    try {
      return action();
    } catch (const Error& error) {
      if (error.code() == Errc::mismatch) {
        broken = error;
        transport->poison({error.code(), transport->rank(), error.what()});
      }
      throw;
    }
  }

  [[noreturn]] void fail(const Active& active) { raise(active, transport->failure()); }

  // One story: who we are, what we were doing, how far it was, what happened.
  [[noreturn]] void raise(const Active& active, const Failure& failure) {
    const auto at = active.run.position();
    ErrorContext context{.rank = transport->rank(),
                         .peer = failure.peer,
                         .operation = std::string(name(active.planned->descriptor.collective)),
                         .sequence = active.tag.sequence};
    std::string where;
    if (at.step != nullptr) {
      context.bytes_done = at.bytes_done;
      context.bytes_expected = at.step->bytes;
      where = fmt::format(", {} in round {} of {} of {}", name(at.step->op), at.round, at.rounds,
                          at.algorithm);
      if (at.passes > 1) where += fmt::format(" (slice {} of {})", at.pass + 1, at.passes);
    }
    if (active.begun != Clock::time_point{})
      context.elapsed_ns = static_cast<std::uint64_t>((transport->now() - active.begun).count());
    broken =
        Error(failure.code,
              fmt::format("rank {}, {} #{}{}: {}", transport->rank(), describe(active.descriptor()),
                          active.tag.sequence, where, failure.why),
              context);
    throw *broken;
  }

  [[nodiscard]] static std::string story_of(const Active& active) {
    return fmt::format("{} #{}", describe(active.descriptor()), active.tag.sequence);
  }

  [[noreturn]] void fail_message() {
    const auto failure = transport->failure();
    broken = Error(failure.code,
                   fmt::format("rank {}, point-to-point: {}", transport->rank(), failure.why),
                   {.rank = transport->rank(), .peer = failure.peer, .operation = "message"});
    throw *broken;
  }

  [[noreturn]] void time_out(Active& active, std::chrono::nanoseconds limit) {
    const Failure failure{
        Errc::timeout, -1,
        fmt::format("no end after {:.1f} s: {}", std::chrono::duration<double>(limit).count(),
                    transport->who_is_late())};
    transport->poison({Errc::timeout, transport->rank(),
                       fmt::format("rank {} gave up on {} #{} ({})", transport->rank(),
                                   describe(active.descriptor()), active.tag.sequence,
                                   transport->who_is_late())});
    raise(active, failure);
  }

  // A rank that is late may be computing, stopped or slow: people want to know before it is given
  // up.
  void warn_if_late(Clock::time_point now, Clock::time_point begun, Clock::time_point& at,
                    const std::function<std::string()>& what) const {
    if (!options.warn || now < at) return;
    at = now + (now - begun);
    options.warn(fmt::format("rank {}, {}: still waiting after {:.1f} s: {}", transport->rank(),
                             what(), std::chrono::duration<double>(now - begun).count(),
                             transport->who_is_late()));
  }

  // What others wait for first is posted before anything else, if this is the last call again.
  void start_ahead(const Call& call) noexcept {
    if (alone.run.is_ready(call.options.tag) && observer == nullptr && planner.is_last(call))
      alone.run.start_ahead(static_cast<const std::byte*>(call.input));
  }

  // A blocking call on an idle communicator: no queue, and no clock until a wait gets long.
  void run_alone() {
    begin(alone);
    auto progress = alone.run.poll();
    if (progress == Progress::pending) progress = wait_alone();
    if (progress == Progress::failed) fail(alone);
    --alone.planned->users;
    finished = alone.tag.sequence;
  }

  Progress wait_alone() {
    alone.begun = {};
    alone.deadline = Deadline::max();
    constexpr int kBeforeClock = 64;
    Progress progress = Progress::pending;
    for (int idle = 0; progress == Progress::pending; ++idle) {
      bool moved = alone.run.moved();
      poll_messages(moved);
      if (idle == kBeforeClock) {
        alone.begun = transport->now();
        alone.deadline = alone.begun + alone.limit;
        alone.warned = alone.begun + alone.limit / 10;
      }
      if (transport->park(moved, alone.deadline) == Progress::failed) return Progress::failed;
      progress = alone.run.poll();
      if (idle <= kBeforeClock || idle % 16 != 0) continue;
      const auto now = transport->now();
      if (now > alone.deadline && progress == Progress::pending)
        time_out(alone, alone.deadline - alone.begun);
      warn_if_late(now, alone.begun, alone.warned, [&] { return story_of(alone); });
    }
    transport->park(true, alone.deadline);
    return progress;
  }

  [[nodiscard]] std::chrono::nanoseconds limit_of(std::uint64_t id) const {
    for (const auto& active : queue)
      if (active.tag.sequence == id) return active.limit;
    return options.timeout;
  }

  template <class Finished>
  void wait_until(Finished is_finished, std::chrono::nanoseconds limit,
                  const std::function<std::string()>& what, int peer) {
    if (broken) throw *broken;
    const auto begun = transport->now();
    const auto deadline = begun + limit;
    auto warned = begun + limit / 10;
    bool moved = poll_all();
    while (!is_finished()) {
      if (transport->park(moved, deadline) == Progress::failed) {
        if (!queue.empty()) fail(queue.front());
        fail_message();
      }
      moved = poll_all();
      if (!moved && peer >= 0) fail_if_left(peer, is_finished, what);
      if (moved) continue;
      const auto now = transport->now();
      warn_if_late(now, begun, warned, what);
      if (now > deadline) {
        if (peer < 0 && !queue.empty()) time_out(queue.front(), limit);
        end_message({Errc::timeout, transport->rank(),
                     fmt::format("rank {}: {} did not finish within {:.1f} s", transport->rank(),
                                 what(), std::chrono::duration<double>(limit).count())},
                    peer);
      }
    }
    transport->park(true, deadline);
  }

  // Whoever leaves may have sent before; after that nothing comes, and nothing is taken.
  template <class Finished>
  void fail_if_left(int peer, Finished is_finished, const std::function<std::string()>& what) {
    if (!transport->has_left(peer) || poll_all() || is_finished() || !transport->has_left(peer))
      return;
    const Failure failure{Errc::peer_lost, peer,
                          fmt::format("rank {}: {} cannot finish: rank {} has left",
                                      transport->rank(), what(), peer)};
    transport->poison(failure);
    // It may have left over an error, and that is then the story.
    const auto first = transport->failure();
    if (first.code != failure.code || first.peer != failure.peer) fail_message();
    end_message(failure, peer);
  }

  [[noreturn]] void end_message(const Failure& failure, int peer) {
    transport->poison(failure);
    broken = Error(failure.code, failure.why,
                   {.rank = transport->rank(), .peer = peer, .operation = "message"});
    throw *broken;
  }
};

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
  if (!state_->queue.empty()) return wait(start(call));
  state_->start_ahead(call);
  state_->prepare(state_->alone, call);
  state_->run_alone();
}

Request Communicator::start(const Call& call) {
  Active active(*state_->transport);
  state_->prepare(active, call);
  state_->queue.push_back(active);
  if (state_->queue.size() == 1) state_->begin(state_->queue.front());
  bool moved = false;
  const auto id = state_->queue.back().tag.sequence;
  state_->poll_queue(moved);
  return {Request::Kind::collective, id};
}

bool Communicator::test(Request request) {
  if (state_->broken) throw *state_->broken;
  state_->poll_all();
  switch (request.kind) {
    case Request::Kind::collective:
      return state_->finished >= request.id;
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
  if (request.kind == Request::Kind::collective)
    state_->wait_until([&] { return state_->finished >= request.id; }, state_->limit_of(request.id),
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

SharedBuffer::SharedBuffer(SharedBuffer&& other) noexcept { *this = std::move(other); }
SharedBuffer& SharedBuffer::operator=(SharedBuffer&& other) noexcept {
  std::swap(arena_, other.arena_);
  std::swap(begin_, other.begin_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
SharedBuffer::~SharedBuffer() {
  if (arena_ != nullptr) arena_->free(begin_);
}

void Communicator::install(const World& world) {
  state_->alone.planned = nullptr;  // the planner forgets plans
  state_->planner.install(world);
}
std::vector<Candidate> Communicator::explain(const Call& call) const {
  return state_->planner.explain(call);
}
void Communicator::observe(Observer* observer) noexcept { state_->observer = observer; }

void Communicator::check_room(std::size_t elements, std::size_t needed) const {
  if (elements < needed)
    throw Error(Errc::invalid_argument,
                fmt::format("rank {}: a buffer of {} elements, but {} are needed", rank(), elements,
                            needed));
}

void Communicator::check_parts(std::span<const std::size_t> counts, std::size_t elements,
                               std::size_t own) const {
  std::size_t total = 0;
  for (const auto count : counts) total += count;
  if (counts.size() != parts())
    throw Error(Errc::invalid_argument,
                fmt::format("rank {}: {} counts for {} ranks", rank(), counts.size(), size()));
  check_room(elements, total);
  if (own > 0 && own < counts[static_cast<std::size_t>(rank())])
    throw Error(Errc::invalid_argument,
                fmt::format("rank {}: a part of {} elements, but counts say {}", rank(), own,
                            counts[static_cast<std::size_t>(rank())]));
}

}  // namespace sinew
