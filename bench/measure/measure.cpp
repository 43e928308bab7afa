#include "measure/measure.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

namespace sinew::bench {
namespace {

constexpr std::uint64_t kLongestWarmUpNs = 100'000'000;
// What a sample should last: far above the noise of clocks and of leaving a barrier, and where
// ranks share a core, several time slices of the scheduler: a single call of milliseconds would say
// more about who had the core first than about the call.
constexpr std::uint64_t kSampleNs = 200'000;
constexpr std::uint64_t kCrowdedSampleNs = 20'000'000;
constexpr std::uint32_t kStop = 0;

std::uint64_t nanoseconds(double seconds) noexcept {
  return static_cast<std::uint64_t>(std::max(seconds, 0.0) * 1e9);
}

}  // namespace

Session::Session(Meeting& meeting, Contender& contender, const Case& what)
    : meeting_(meeting), contender_(contender), what_(what), quickest_ns_(sample_ns()) {
  const auto [input, output] = extent(what, meeting.seat().rank, meeting.seat().ranks);
  const bool one_buffer = what.in_place || what.collective == Collective::broadcast;
  output_memory_ = contender.alloc(output * what.element_bytes);
  buffers_.output = output_memory_.first(output * what.element_bytes);
  buffers_.input = buffers_.output;
  if (!one_buffer) {
    input_memory_ = contender.alloc(input * what.element_bytes);
    buffers_.input = input_memory_.first(input * what.element_bytes);
  }
  // Every page is there before anything is timed, and repeated sums in place stay finite.
  std::ranges::fill(buffers_.output, std::byte{});
  std::ranges::fill(buffers_.input, std::byte{});
  contender.prepare(what, buffers_);
}

Session::~Session() {
  contender_.finish();
  if (!input_memory_.empty()) contender_.free(input_memory_);
  contender_.free(output_memory_);
}

bool Session::fits(const Case& what) const {
  Case same = what;
  same.options = what_.options;
  return same == what_;
}

void Session::turn_to(const Case& what) {
  contender_.finish();
  what_ = what;
  quickest_ns_ = sample_ns();
  contender_.prepare(what_, buffers_);
}

std::uint64_t Session::verify() {
  const auto known = std::ranges::find(verified_, what_.options, &Verified::options);
  if (known != verified_.end()) return wrong_ = known->wrong;
  check();
  verified_.push_back({what_.options, wrong_});
  return wrong_;
}

std::uint64_t Session::check() {
  if (what_.collective == Collective::barrier) return wrong_ = verify_barrier();
  contender_.fill(what_, meeting_.seat(), buffers_);
  meeting_.barrier();
  contender_.run();
  wrong_ = contender_.count_wrong(what_, meeting_.seat(), buffers_);
  meeting_.barrier();
  std::ranges::fill(buffers_.output, std::byte{});
  std::ranges::fill(buffers_.input, std::byte{});
  return wrong_;
}

/// Nobody may leave before the last has come.
std::uint64_t Session::verify_barrier() {
  meeting_.barrier();
  std::this_thread::sleep_for(std::chrono::microseconds(200 * meeting_.seat().rank));
  const Stamp mine = timed(1);
  meeting_.stamp(0, mine);
  meeting_.barrier();
  const std::uint64_t last_arrival = meeting_.last_of_all(0).begin_ns;
  meeting_.barrier();
  return mine.end_ns < last_arrival ? 1 : 0;
}

Stamp Session::timed(std::uint32_t calls) {
  Stamp times;
  times.begin_ns = now_ns();
  for (std::uint32_t call = 0; call < calls; ++call) contender_.run();
  times.end_ns = now_ns();
  return times;
}

/// Calls that do not count, but tell how long one takes.
void Session::rehearse(std::uint32_t calls) {
  if (what_.rewrite) contender_.rewrite(buffers_);
  meeting_.barrier();
  const Stamp mine = timed(calls);
  meeting_.stamp(0, {0, mine.end_ns - mine.begin_ns});
  meeting_.barrier();
  const std::uint64_t longest_ns = meeting_.last_of_all(0).end_ns;
  quickest_ns_ = std::clamp<std::uint64_t>(longest_ns / calls, 1, quickest_ns_);
}

std::uint64_t Session::sample_ns() const noexcept {
  return meeting_.crowded() ? kCrowdedSampleNs : kSampleNs;
}

/// From the quickest call so far: one that was interrupted says nothing about how many fit.
std::uint32_t Session::calls_a_sample() const noexcept {
  const std::uint64_t fitting = (sample_ns() + quickest_ns_ - 1) / quickest_ns_;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fitting, 1, kMaxBatch));
}

/// Returns the calls a sample, which rank 0 decides.
std::uint32_t Session::warm_up(const Limits& limits) {
  // A second call of a batch would find the input as the first one left it.
  const bool grows = limits.batch == 0 && !what_.rewrite;
  std::uint32_t batch = std::clamp<std::uint32_t>(limits.batch, 1, kMaxBatch);
  if (limits.warm_up >= 0) {
    for (std::int32_t call = 0; call < limits.warm_up; ++call) rehearse(1);
    return meeting_.agree(grows ? calls_a_sample() : batch);
  }
  const std::uint64_t begin_ns = now_ns();
  const std::uint64_t enough_ns = std::min(nanoseconds(limits.budget_s) / 10, kLongestWarmUpNs);
  while (true) {
    rehearse(batch);
    const std::uint64_t elapsed_ns = now_ns() - begin_ns;
    std::uint32_t next = kStop;
    if (grows && calls_a_sample() > batch && elapsed_ns < nanoseconds(limits.budget_s)) {
      next = std::min(calls_a_sample(), 2 * batch);
    } else if (elapsed_ns < enough_ns) {
      next = batch;
    }
    next = meeting_.agree(next);
    if (next == kStop) return batch;
    batch = next;
  }
}

void Session::measure(const Limits& limits) {
  std::uint64_t begin_ns = now_ns();
  const std::uint32_t batch = warm_up(limits);
  if (limits.warm_up >= 0) begin_ns = now_ns();
  std::uint32_t samples = 0;
  while (samples < limits.samples) {
    if (what_.rewrite) {
      // Whoever is done first must not keep the core from those whose call has yet to return.
      meeting_.barrier();
      contender_.rewrite(buffers_);
    }
    const bool overdue = samples > 0 && now_ns() - begin_ns > nanoseconds(limits.budget_s);
    if (meeting_.agree(overdue ? kStop : batch) == kStop) break;
    meeting_.stamp(samples++, timed(batch));
  }
  meeting_.report({.wrong = wrong_,
                   .samples = samples,
                   .batch = batch,
                   .from_first = what_.rewrite || meeting_.crowded()});
}

void serve(Control& control, Contender& contender) {
  std::unique_ptr<Session> session;
  control.join();
  try {
    while (const auto command = control.next_command()) {
      if (session && !session->fits(command->what)) session.reset();
      if (!contender.supports(command->what)) {
        control.finish(RankState::unsupported);
        continue;
      }
      if (!session)
        session = std::make_unique<Session>(control, contender, command->what);
      else if (session->what() != command->what)
        session->turn_to(command->what);
      session->verify();
      session->measure(command->limits);
      control.finish(RankState::done, contender.remark());
    }
  } catch (const Abandoned&) {
    throw;
  } catch (const std::exception& error) {
    control.finish(RankState::failed, error.what());
    throw;
  }
}

}  // namespace sinew::bench
