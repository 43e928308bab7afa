#include "runtime/run.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernel/copy.hpp"

namespace sinew {
namespace {

std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
}

}  // namespace

void Run::begin(Transport& transport, OpTag tag) noexcept {
  transport_ = &transport;
  board_ = transport.board();
  tag_ = tag;
  observer_ = nullptr;
  pass_ = part_ = 0;
  settled_ = plan_->streams.empty();
  if (plan_->staged_bytes > 0) {
    std::memcpy(plan_->scratch.get(), input_, plan_->binding().input.total());
    input_ = plan_->scratch.get();
  }
  if (board_ != nullptr) {
    board_->begin(tag, plan_->uses_board ? plan_->passes * plan_->schedule().rounds : 0);
    if (plan_->uses_board) board_->begin_pass();
  }
  streams_ = false;
  if (plan_->measures_stores) {
    streams_ = plan_->stores.streams();
    begun_ns_ = now_ns();
  }
  rewind();
}

void Run::rewind() noexcept {
  for (auto& next : next_round_) next = 0;
  for (auto& done : plan_->done) done = 0;
  if (board_ != nullptr && plan_->posts_start) board_->post(at(plan_->first_round));
}

void Run::observe(Observer& observer, const Event& event) noexcept {
  observer_ = &observer;
  event_ = event;
  event_.begin_ns = now_ns();
  idle_since_ns_ = 0;
}

Progress Run::poll() noexcept {
  moved_ = false;
  while (!settled_) {
    bool all_done = true;
    for (std::size_t stream = 0; stream < plan_->streams.size(); ++stream) {
      const auto progress = poll_stream(stream);
      if (progress == Progress::failed) return progress;
      all_done &= progress == Progress::done;
    }
    if (!all_done) break;
    settled_ = !next_pass();
    if (settled_ && plan_->measures_stores) plan_->stores.took(now_ns() - begun_ns_);
  }
  if (observer_ != nullptr) [[unlikely]]
    observe_end();
  return settled_ ? Progress::done : Progress::pending;
}

Progress Run::poll_stream(std::size_t stream) noexcept {
  const auto& rounds = plan_->streams[stream];
  auto& next = next_round_[stream];
  while (next < rounds.size()) {
    const BoundRound& round = rounds[next];
    round_ = round.number;
    bool complete = true;
    for (auto index = round.begin; index < round.end; ++index) {
      auto& done = plan_->done[index];
      if (done != 0) continue;
      const auto progress = attempt(index);
      if (progress == Progress::failed) return progress;
      if (progress == Progress::pending) {
        complete = false;
        continue;
      }
      done = 1;
      moved_ = true;
      if (board_ != nullptr) board_->count_step();
      if (observer_ != nullptr) [[unlikely]]
        observe_step(plan_->steps[index]);
    }
    if (!complete) return Progress::pending;
    if (round.post) board_->post(at(round.then));
    ++next;
  }
  return Progress::done;
}

// The schedule again, over the next slice. False: that was the last.
bool Run::next_pass() noexcept {
  if (plan_->uses_board) board_->end_pass(at(plan_->schedule().rounds));
  if (pass_ + 1 >= plan_->passes) {
    if (plan_->divide_output)
      divide(plan_->binding().dtype, output_,
             plan_->binding().output.total() / size_of(plan_->binding().dtype),
             plan_->binding().divisor);
    return next_part();
  }
  ++pass_;
  board_->begin_pass();
  rewind();
  return true;
}

// The schedule again, over the next part of the vector. Such plans are of messages only.
bool Run::next_part() noexcept {
  if (++part_ >= plan_->times && !plan_->rest) return false;
  if (input_ != nullptr) input_ += plan_->stride;
  if (output_ != nullptr) output_ += plan_->stride;
  if (part_ >= plan_->times) plan_ = plan_->rest.get();
  rewind();
  return true;
}

const std::byte* Run::source(const BoundStep& step) const noexcept {
  switch (step.src_buf) {
    case Buf::input:
      return input_ + step.src;
    case Buf::output:
      return output_ + step.src;
    default:
      return plan_->scratch.get() + plan_->staged_bytes + step.src;
  }
}

std::byte* Run::destination(const BoundStep& step) const noexcept {
  return step.dst_buf == Buf::output ? output_ + step.dst
                                     : plan_->scratch.get() + plan_->staged_bytes + step.dst;
}

Progress Run::attempt(std::uint32_t index) noexcept {
  const BoundStep& step = plan_->steps[index];
  const auto begin = plan_->passes == 1 ? 0 : pass_ * plan_->width;
  const auto bytes = begin >= step.bytes ? 0 : std::min(plan_->width, step.bytes - begin);
  if (bytes == 0 && step.bytes > 0) return Progress::done;  // of this chunk nothing is left
  switch (step.op) {
    case Op::send:
    case Op::recv:
    case Op::recv_reduce: {
      Transfer& transfer = plan_->transfers[index];
      if (transfer.tag.sequence != tag_.sequence || transfer.pass != pass_ + part_)
        transfer = {step.peer, step.channel, tag_, 0, pass_ + part_};
      if (step.op == Op::send) {
        const auto before = transfer.moved;
        const auto progress = transport_->send(transfer, {source(step) + begin, bytes});
        moved_ |= transfer.moved != before;
        return progress;
      }
      const std::span<std::byte> into{destination(step) + begin, bytes};
      const auto before = transfer.moved;
      const auto progress = step.op == Op::recv
                                ? transport_->recv(transfer, into)
                                : transport_->recv_reduce(transfer, into, plan_->reducer);
      moved_ |= transfer.moved != before;
      return progress;
    }
    case Op::copy:
      copy_bytes(destination(step) + begin, source(step) + begin, bytes, step.streaming);
      return Progress::done;
    case Op::reduce:
      plan_->reducer.pair(destination(step) + begin, source(step) + begin,
                          bytes / plan_->reducer.element_bytes);
      return Progress::done;
    case Op::publish:
      return publish(step, begin, bytes);
    default:
      return gather(step, begin, bytes);
  }
}

Progress Run::publish(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes) noexcept {
  // The slot was last used two passes ago; its readers must be done with it.
  for (const int member : plan_->groups[static_cast<std::size_t>(step.group)])
    if (member != transport_->rank() && !board_->reached(member, board_->writable_after()))
      return board_->mismatch() < 0 ? Progress::pending
                                    : transport_->mismatched(board_->mismatch());
  if (step.echoed) return Progress::done;
  if (bytes > 0 && !plan_->by_reference)
    copy_bytes(slot(transport_->rank()) + step.board, source(step) + begin, bytes, streams_);
  else
    board_->expose(input_, output_);
  return Progress::done;
}

Progress Run::gather(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes) noexcept {
  const auto& group = plan_->groups[static_cast<std::size_t>(step.group)];
  const auto missing = [&](int member) {
    return member != transport_->rank() && !board_->reached(member, at(round_));
  };
  const bool waits =
      step.peer >= 0 ? missing(step.peer) : std::any_of(group.begin(), group.end(), missing);
  if (waits)
    return board_->mismatch() < 0 ? Progress::pending : transport_->mismatched(board_->mismatch());
  if (bytes == 0) return Progress::done;
  if (plan_->by_reference) {
    if (!board_->pull(step.peer, step.from_output, step.remote, destination(step), bytes,
                      step.streaming))
      return transport_->lost(step.peer);
  } else if (step.op == Op::gather_copy)
    copy_bytes(destination(step) + begin, slot(step.peer) + step.board, bytes, step.streaming);
  else if (step.op == Op::gather_reduce)
    fold(step, begin, bytes);
  else
    fold_everywhere(step, begin, bytes);
  return Progress::done;
}

void Run::fold(const BoundStep& step, std::uint64_t begin, std::uint64_t bytes) noexcept {
  const auto& group = plan_->groups[static_cast<std::size_t>(step.group)];
  std::size_t count = 0;
  for (const int member : group)
    plan_->inputs[count++] =
        member == transport_->rank() ? source(step) + begin : slot(member) + step.board;
  std::byte* const into[] = {destination(step) + begin, slot(transport_->rank()) + step.echo};
  const auto elements = bytes / plan_->reducer.element_bytes;
  plan_->reducer.fold({into, step.echoes ? 2U : 1U}, {plan_->inputs.data(), count}, elements,
                      step.echoes && streams_);
  if (plan_->divide_folds)
    divide(plan_->binding().dtype, into[0], elements, plan_->binding().divisor);
}

// Block by block: the sum in the first-level cache, then out to one member after the other, so that
// each is written in one stream.
void Run::fold_everywhere(const BoundStep& step, std::uint64_t begin,
                          std::uint64_t bytes) noexcept {
  const auto& group = plan_->groups[static_cast<std::size_t>(step.group)];
  const auto element = plan_->reducer.element_bytes;
  std::byte* const sum = plan_->block.get();
  for (std::uint64_t piece = 0; piece < bytes; piece += Plan::kBlockBytes) {
    const auto length = std::min(Plan::kBlockBytes, bytes - piece);
    std::size_t count = 0;
    for (const int member : group)
      plan_->inputs[count++] =
          board_->exposed(member, step.src_buf == Buf::output) + step.src + begin + piece;
    plan_->reducer.fold({&sum, 1}, {plan_->inputs.data(), count}, length / element, false);
    if (plan_->divide_folds)
      divide(plan_->binding().dtype, sum, length / element, plan_->binding().divisor);
    for (const int member : group)
      copy_bytes(board_->exposed(member, true) + step.dst + begin + piece, sum, length, false);
  }
}

void Run::observe_step(const BoundStep& step) noexcept {
  const auto now = now_ns();
  Event event = event_;
  event.kind = EventKind::step;
  event.operation = static_cast<std::uint8_t>(step.op);
  event.channel = step.channel;
  event.round = round_;
  event.peer = step.peer;
  event.bytes = std::min(step.bytes, plan_->width);
  event.begin_ns = idle_since_ns_ != 0 ? idle_since_ns_ : now;
  event.end_ns = now;
  event.waiting_ns = 0;
  observer_->on_event(event);
}

// Between a poll that moved nothing and the next that did, the run was waiting.
void Run::observe_end() noexcept {
  const auto now = now_ns();
  if (!moved_ && idle_since_ns_ == 0) idle_since_ns_ = now;
  if (moved_ && idle_since_ns_ != 0) event_.waiting_ns += now - std::exchange(idle_since_ns_, 0);
  if (!settled_) return;
  event_.end_ns = now;
  observer_->on_event(event_);
}

Run::Position Run::position() const noexcept {
  Position position{
      plan_->schedule().name, pass_, plan_->passes, round_, plan_->schedule().rounds, nullptr, 0};
  for (std::size_t stream = 0; stream < plan_->streams.size(); ++stream) {
    if (next_round_[stream] >= plan_->streams[stream].size()) continue;
    const auto& round = plan_->streams[stream][next_round_[stream]];
    for (auto index = round.begin; index < round.end; ++index)
      if (plan_->done[index] == 0) {
        position.step = &plan_->steps[index];
        position.round = round.number;
        const auto& transfer = plan_->transfers[index];
        position.bytes_done = transfer.tag.sequence == tag_.sequence ? transfer.moved : 0;
        return position;
      }
  }
  return position;
}

}  // namespace sinew
