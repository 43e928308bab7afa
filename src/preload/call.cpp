#include "preload/call.hpp"

#include <new>

#include <sinew/trace.hpp>

namespace sinew::preload {

Key Call::key_of(Routine routine, const Place& place, const Volume& volume) noexcept {
  session().note_routine(routine, kNames[routine]);
  Key key;
  key.kind = static_cast<std::uint8_t>(EventKind::call);
  key.operation = routine;
  key.communicator = place.id;
  key.bytes = volume.bytes;
  key.sent = volume.sent;
  key.received = volume.received;
  key.peer = volume.peer;
  if (volume.has_tag) {
    key.tag = static_cast<std::uint32_t>(volume.tag);
    key.label = session().label_of(volume.tag);
  }
  key.region = session().region.load(std::memory_order_relaxed);
  return key;
}

Slot* Call::count(const Key& key) noexcept {
  const auto found = thread_->log.find(key);
  if (!found.exact) {
    found.slot->more_sent += key.sent;
    found.slot->more_received += key.received;
  }
  thread_->log.add(*found.slot, begin_, took_, 0, ++thread_->calls);
  return found.slot;
}

void Repeat::fail(Thread& thread, Routine routine, const Memo& memo, std::uint64_t begin,
                  std::uint64_t took) noexcept {
  Key key;
  key.kind = static_cast<std::uint8_t>(EventKind::call);
  key.operation = routine;
  key.communicator = memo.slot->communicator;
  key.region = memo.slot->region;
  thread.log.add(*thread.log.find(key).slot, begin, took, 0, ++*memo.sequence);
}

void follow(int result, MPI_Request* request, Slot* slot, bool receives, std::uint64_t begin,
            std::uint64_t took) noexcept {
  const auto& handles = session().handles;
  if (result != MPI_SUCCESS || *request == handles.no_request) return;
  if (is_shared(handles, *request)) {
    slot->in_flight += took;
    return;
  }
  Entry* const entry = requests().insert(number_of(*request));
  if (entry == nullptr) return;
  entry->slot = slot;
  entry->posted = begin;
  entry->repeated = nullptr;
  entry->receives = receives;
  entry->cancelled.store(false, std::memory_order_relaxed);
}

void Call::keep(const Key& key, bool receives, MPI_Request* request) noexcept {
  Entry* const entry = requests().insert(number_of(*request));
  if (entry == nullptr) return;
  entry->slot = nullptr;
  entry->repeated = new (std::nothrow) Repeated{key};
  entry->receives = receives;
  entry->cancelled.store(false, std::memory_order_relaxed);
}

void Call::created(int result, MPI_Comm* made) noexcept {
  if (result != MPI_SUCCESS || *made == session().handles.no_comm) return;
  session().forget(number_of(*made));
  g_epoch.fetch_add(1, std::memory_order_relaxed);
  session().place(*made);
}

}  // namespace sinew::preload
