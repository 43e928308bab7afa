#include "mpi/control.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

namespace sinew::mpi {

Control::Control(MPI_Comm comm, int rank, int size, Counters& counters)
    : comm_(comm), rank_(rank), size_(size), counters_(counters) {
  for (auto* told : {&status_, &here_, &last_words_, &closed_})
    told->requests.assign(static_cast<std::size_t>(size), MPI_REQUEST_NULL);
}

void Control::tell(Told& told, int to) noexcept {
  const auto peer = static_cast<std::size_t>(to);
  if (MPI_Isend(&told.message, sizeof told.message, MPI_BYTE, to, kControlTag, comm_,
                &told.requests[peer]) == MPI_SUCCESS)
    ++counters_.sent[peer];
}

void Control::tell_all(Told& told) noexcept {
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) tell(told, peer);
}

bool Control::is_sent(Told& told) noexcept {
  int done = 0;
  MPI_Testall(static_cast<int>(told.requests.size()), told.requests.data(), &done,
              MPI_STATUSES_IGNORE);
  return done != 0;
}

void Control::tell_status(const History& history) noexcept {
  if (!is_sent(status_)) return;
  status_.message.kind = ControlMessage::Kind::status;
  status_.message.sequence = history.last().sequence;
  std::ranges::copy(history.ops(), status_.message.history);
  tell_all(status_);
}

void Control::tell_left(std::uint32_t sequence) noexcept {
  if (!is_sent(last_words_)) return;
  last_words_.message.kind = ControlMessage::Kind::left;
  last_words_.message.sequence = sequence;
  tell_all(last_words_);
}

void Control::tell_poison(std::uint32_t sequence, const Failure& failure) noexcept {
  if (!is_sent(last_words_)) return;
  auto& message = last_words_.message;
  message.kind = ControlMessage::Kind::poison;
  message.sequence = sequence;
  message.code = static_cast<std::uint32_t>(failure.code);
  message.peer = failure.peer;
  const auto length = std::min(failure.why.size(), sizeof message.text - 1);
  std::memcpy(message.text, failure.why.data(), length);
  message.text[length] = '\0';
  tell_all(last_words_);
}

void Control::tell_closed() noexcept {
  closed_.message.kind = ControlMessage::Kind::closed;
  tell_all(closed_);
}

void Control::tell_here(std::span<const int> members, std::uint64_t label) noexcept {
  here_.message.kind = ControlMessage::Kind::here;
  here_.message.label = label;
  for (const int member : members)
    if (member != rank_) tell(here_, member);
}

const ControlMessage* Control::poll(int& from) noexcept {
  int waits = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, kControlTag, comm_, &waits, &status) != MPI_SUCCESS || waits == 0)
    return nullptr;
  from = status.MPI_SOURCE;
  if (MPI_Recv(&received_, sizeof received_, MPI_BYTE, from, kControlTag, comm_, &status) !=
      MPI_SUCCESS)
    return nullptr;
  ++counters_.received[static_cast<std::size_t>(from)];
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  const bool complete =
      bytes == static_cast<int>(sizeof received_) && received_.magic == ControlMessage::kMagic;
  received_.text[sizeof received_.text - 1] = '\0';
  return complete ? &received_ : nullptr;
}

bool Control::all_sent() noexcept {
  bool all = true;
  for (auto* told : {&status_, &here_, &last_words_, &closed_}) all &= is_sent(*told);
  return all;
}

void Control::push_out(Deadline deadline) noexcept {
  while (!all_sent() && Clock::now() < deadline) sched_yield();
}

}  // namespace sinew::mpi
