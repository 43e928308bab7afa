// What a communicator is inside: the operations under way, in their order, and how they are waited
// for, measured and failed. In a header because a short call must be one function.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory_resource>
#include <optional>

#include <sinew/communicator.hpp>
#include "runtime/active.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/mailbox.hpp"
#include "transport/descriptor.hpp"

namespace sinew {

inline std::uint32_t next_communicator_number() {
  static std::atomic<std::uint32_t> count{0};
  return ++count;
}

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
  // Of what is queued: used again, not given back.
  std::pmr::unsynchronized_pool_resource room{std::pmr::new_delete_resource()};
  std::pmr::deque<Active> queue{&room};  // started and not done; only the first runs
  Active alone;                          // a blocking call with nothing queued
  Planned* last_queued = nullptr;        // the plan of what was last done of the queue
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
    take_number(active, call.options);
    active.run.set(planned.plan, static_cast<const std::byte*>(call.input),
                   static_cast<std::byte*>(call.output));
  }

  // Numbers begin again at 0 after four billion.
  [[nodiscard]] bool is_finished(std::uint64_t id) const noexcept {
    return static_cast<std::int32_t>(finished - static_cast<std::uint32_t>(id)) >= 0;
  }

  [[nodiscard]] std::chrono::nanoseconds limit_for(const CallOptions& of_call) const noexcept {
    return of_call.timeout.count() > 0 ? of_call.timeout : options.timeout;
  }

  void take_number(Active& active, const CallOptions& of_call) noexcept {
    active.limit = limit_for(of_call);
    active.user_tag = of_call.tag;
    active.tag.sequence = ++sequence;
  }

  void begin(Active& active) {
    active.planned->descriptor.tag = active.user_tag;
    begin(active, active.planned->descriptor, active.planned->hash);
  }
  // In the order in which operations were started, so that fingerprints are what ranks compare.
  void begin(Active& active, const OpDescriptor& announced, std::uint64_t hash) {
    fingerprint = next_fingerprint(fingerprint, hash, announced.tag);
    active.tag.fingerprint = fingerprint;
    active.run.begin(active.tag, announced, hash);
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

  void enqueue(const Active& active) {
    queue.push_back(active);
    if (queue.size() == 1) begin_next();
  }

  void begin_next() {
    auto& active = queue.front();
    if (active.role != TrialRole::none) [[unlikely]]
      active.begin_role(transport->now());
    if (active.role == TrialRole::exchange) [[unlikely]]
      return begin(active, active.trial->exchange(), hash_of(active.trial->exchange()));
    begin(active);
  }

  // A call of a trial. Whoever starts one must not wait, so neither must the first after the last
  // turn: it is queued behind the exchange of times, and has its plan when it begins.
  void prepare_tried(Active& active, const Call& call, const std::shared_ptr<Trial>& trial) {
    if (broken) throw *broken;
    alone.planned = nullptr;  // the planner may forget it
    const bool has_turn = trial->has_turns();
    std::array<Used, kMostTried> plans;
    for (int side = 0; side < static_cast<int>(trial->sides()); ++side)
      if (!has_turn || side == trial->turn())
        plans[static_cast<std::size_t>(side)] = use(planner.plan_tried(call, trial->side(side)));
    auto exchange = trial->wants_to_ask() ? use(planner.plan_exchange(*trial)) : Used();
    if (exchange) enqueue_exchange(trial, std::move(exchange), call.options.timeout);
    active.role = !has_turn              ? TrialRole::waits
                  : trial->turn_counts() ? TrialRole::turn
                                         : TrialRole::warm_up;
    active.trial = trial;
    active.side = trial->turn();
    active.is_first_turn = trial->turn_is_first();
    if (has_turn) {
      active.planned = plans[static_cast<std::size_t>(active.side)].release();
      trial->take_turn();
    } else {
      for (std::size_t side = 0; side < plans.size(); ++side)
        active.choices[side] = plans[side].release();
      active.planned = active.choices.front();  // until it is known
    }
    take_number(active, call.options);
    active.input = static_cast<const std::byte*>(call.input);
    active.output = static_cast<std::byte*>(call.output);
    active.run.set(active.planned->plan, active.input, active.output);
  }

  void enqueue_exchange(const std::shared_ptr<Trial>& trial, Used planned,
                        std::chrono::nanoseconds timeout) {
    const auto times = std::as_writable_bytes(trial->times());
    Active active(*transport);
    active.role = TrialRole::exchange;
    active.trial = trial;
    active.planned = planned.release();
    take_number(active, {.tag = kTrialTag, .timeout = timeout});
    active.run.set(active.planned->plan, times.data(), times.data());
    enqueue(active);
    trial->ask();
  }

  // The operation whose turn it is, if any.
  Progress poll_queue(bool& moved) {
    while (!queue.empty()) {
      const auto progress = queue.front().run.poll();
      moved |= queue.front().run.moved();
      if (progress == Progress::failed) fail(queue.front());
      if (progress == Progress::pending) return progress;
      finished = queue.front().tag.sequence;
      last_queued = queue.front().planned;
      --last_queued->users;
      if (queue.front().role != TrialRole::none) [[unlikely]]
        queue.front().end_role(transport->now());
      queue.pop_front();
      if (!queue.empty()) begin_next();
    }
    return Progress::done;
  }

  // The operation at the front, if it is measured.
  [[nodiscard]] Active* measured() noexcept {
    return !queue.empty() && queue.front().role == TrialRole::turn ? &queue.front() : nullptr;
  }
  /// While the caller is in here.
  class Visit {
   public:
    explicit Visit(State& state) noexcept : state_(state) {
      if (auto* const active = state.measured()) active->come_in(state.transport->now());
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit() {
      if (auto* const active = state_.measured()) active->go_out(state_.transport->now());
    }

   private:
    State& state_;
  };

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
      context.bytes_expected = at.bytes_expected;
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

  // Training repeats itself: a short call that is the last one again has nothing to prepare.
  [[nodiscard]] bool repeats(const Call& call) const noexcept {
    return alone.planned != nullptr && alone.run.can_repeat(call.options.tag) &&
           observer == nullptr && !broken && queue.empty() && planner.is_last(call);
  }
  void repeat(const Call& call) {
    alone.limit = limit_for(call.options);
    const auto progress = alone.run.repeat(++sequence);
    alone.tag = alone.run.tag();
    fingerprint = alone.tag.fingerprint;
    finish_alone(progress);
  }

  // A blocking call on an idle communicator: no queue, and no clock until a wait gets long.
  void run_alone() {
    begin(alone);
    finish_alone(alone.run.poll());
    --alone.planned->users;
  }
  void finish_alone(Progress progress) {
    if (progress == Progress::failed) alone.begun = {};  // at once: there was nothing to wait for
    if (progress == Progress::pending) progress = wait_alone();
    if (progress == Progress::failed) fail(alone);
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
      if (!moved && peer != -1) fail_if_left(peer, is_finished, what);
      if (moved) continue;
      const auto now = transport->now();
      warn_if_late(now, begun, warned, what);
      if (now > deadline) {
        if (peer == -1 && !queue.empty()) time_out(queue.front(), limit);
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
    const int gone = whom_to_miss(peer);
    if (gone < 0 || poll_all() || is_finished() || whom_to_miss(peer) < 0) return;
    const Failure failure{
        Errc::peer_lost, gone,
        fmt::format("rank {}: {} cannot finish: {} left", transport->rank(), what(),
                    peer == kAnyPeer ? "all others have" : fmt::format("rank {} has", peer))};
    transport->poison(failure);
    // It may have left over an error, and that is then the story.
    const auto first = transport->failure();
    if (first.code != failure.code || first.peer != failure.peer) fail_message();
    end_message(failure, gone);
  }

  // Who has left, so that a message with `peer` cannot be; -1: nobody. One from anybody can as long
  // as one of the others is there, and in a group of one as long as this rank is.
  [[nodiscard]] int whom_to_miss(int peer) const noexcept {
    if (peer != kAnyPeer) return transport->has_left(peer) ? peer : -1;
    int gone = -1;
    for (int other = 0; other < transport->size(); ++other) {
      if (other == transport->rank()) continue;
      if (!transport->has_left(other)) return -1;
      gone = other;
    }
    return gone;
  }

  [[noreturn]] void end_message(const Failure& failure, int peer) {
    transport->poison(failure);
    broken = Error(failure.code, failure.why,
                   {.rank = transport->rank(), .peer = std::max(peer, -1), .operation = "message"});
    throw *broken;
  }
};

}  // namespace sinew
