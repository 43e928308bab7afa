// Where requests end, and where persistent ones begin again.
#include "preload/completion.hpp"

#include <algorithm>

namespace sinew::preload {
namespace {

Entry* entry_of(MPI_Request request) noexcept {
  return request == session().handles.no_request ? nullptr : requests().find(number_of(request));
}

/// Relaxed: another thread may have posted it, whose counters these are.
void add(std::uint64_t& counter, std::uint64_t amount) noexcept {
  std::atomic_ref(counter).fetch_add(amount, std::memory_order_relaxed);
}

bool was_cancelled(const Entry& entry, const MPI_Status& status) noexcept {
  int cancelled = 0;
  if (entry.cancelled.load(std::memory_order_relaxed))
    session().ask.test_cancelled(&status, &cancelled);
  return cancelled != 0;
}

/// Of an error code, which may say more than its class.
int class_of(int result) noexcept {
  int kind = result;
  session().ask.error_class(result, &kind);
  return kind;
}

/// `status` may be null for what was sent. `fine`: its status can be believed.
void complete(const Call& call, Entry* entry, const MPI_Status* status, bool fine) noexcept {
  if (entry == nullptr || entry->slot == nullptr) return;
  Slot& slot = *entry->slot;
  add(slot.in_flight, call.end() - entry->posted);
  add(slot.waiting, call.end() - call.begin());
  if (entry->receives && fine && status != nullptr && !was_cancelled(*entry, *status))
    add(slot.more_received, session().status_bytes(*status));
  if (entry->repeated != nullptr)
    entry->slot = nullptr;
  else
    requests().remove(*entry);
}

/// The requests of one completion call, looked up before the library may reuse their handles.
class Batch {
 public:
  Batch(Call& call, int count, const MPI_Request* handles, MPI_Status* statuses)
      : call_(call), statuses_(statuses) {
    auto& entries = call.thread().entries;
    entries.assign(static_cast<std::size_t>(std::max(count, 0)), nullptr);
    bool receives = false;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i] = entry_of(handles[i]);
      receives |= entries[i] != nullptr && entries[i]->receives;
    }
    if (!receives || statuses != MPI_STATUSES_IGNORE) return;
    call.thread().statuses.resize(entries.size());
    statuses_ = call.thread().statuses.data();
  }
  [[nodiscard]] MPI_Status* statuses() const noexcept { return statuses_; }

  /// Request number `index` is done; its status is number `place`.
  void done(int result, int index, int place) noexcept {
    const MPI_Status* const status = statuses_ == MPI_STATUSES_IGNORE ? nullptr : statuses_ + place;
    bool fine = result == MPI_SUCCESS;
    if (!fine && status != nullptr && class_of(result) == MPI_ERR_IN_STATUS) {
      if (class_of(status->MPI_ERROR) == MPI_ERR_PENDING) return;
      fine = status->MPI_ERROR == MPI_SUCCESS;
    }
    complete(call_, call_.thread().entries[static_cast<std::size_t>(index)], status, fine);
  }

 private:
  Call& call_;
  MPI_Status* statuses_;
};

/// A request with the status of its own that counting what came needs.
class Single {
 public:
  Single(const MPI_Request* request, MPI_Status* status)
      : entry_(entry_of(*request)),
        status_(entry_ != nullptr && entry_->receives && status == MPI_STATUS_IGNORE ? &own_
                                                                                     : status) {}
  MPI_Status* status() noexcept { return status_; }
  void done(const Call& call, int result) noexcept {
    complete(call, entry_, status_ == MPI_STATUS_IGNORE ? nullptr : status_, result == MPI_SUCCESS);
  }

 private:
  Entry* entry_;
  MPI_Status own_{};
  MPI_Status* status_;
};

/// Key of a started request, with the call that starts it.
Key started(const Entry& entry, Routine routine) noexcept {
  Key key = entry.repeated->key;
  key.operation = routine;
  return key;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): named after the routines
int wrap_Wait(MPI_Request* request, MPI_Status* status) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Wait(request, status);
  Single single(request, status);
  const int result = next.Wait(request, single.status());
  call.stop();
  single.done(call, result);
  call.finish_memo(kRoutine_Wait, result, Nowhere{}, kNoVolume, false);
  return result;
}

int wrap_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Test(request, flag, status);
  Single single(request, status);
  const int result = next.Test(request, flag, single.status());
  call.stop();
  if (result != MPI_SUCCESS || *flag != 0) single.done(call, result);
  call.finish_memo(kRoutine_Test, result, Nowhere{}, kNoVolume, false);
  return result;
}

int wrap_Waitall(int count, MPI_Request requests[], MPI_Status* statuses) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Waitall(count, requests, statuses);
  Batch batch(call, count, requests, statuses);
  const int result = next.Waitall(count, requests, batch.statuses());
  call.stop();
  for (int i = 0; i < count; ++i) batch.done(result, i, i);
  call.finish_memo(kRoutine_Waitall, result, Nowhere{}, kNoVolume, false);
  return result;
}

int wrap_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Testall(count, requests, flag, statuses);
  Batch batch(call, count, requests, statuses);
  const int result = next.Testall(count, requests, flag, batch.statuses());
  call.stop();
  if (result != MPI_SUCCESS || *flag != 0)
    for (int i = 0; i < count; ++i) batch.done(result, i, i);
  call.finish_memo(kRoutine_Testall, result, Nowhere{}, kNoVolume, false);
  return result;
}

int wrap_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Waitany(count, requests, index, status);
  SeenStatus seen(status);
  Batch batch(call, count, requests, seen.get());
  const int result = next.Waitany(count, requests, index, seen.get());
  call.stop();
  if (*index >= 0 && *index < count) batch.done(result, *index, 0);
  call.finish_memo(kRoutine_Waitany, result, Nowhere{}, kNoVolume, false);
  return result;
}

int wrap_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Testany(count, requests, index, flag, status);
  SeenStatus seen(status);
  Batch batch(call, count, requests, seen.get());
  const int result = next.Testany(count, requests, index, flag, seen.get());
  call.stop();
  if (*flag != 0 && *index >= 0 && *index < count) batch.done(result, *index, 0);
  call.finish_memo(kRoutine_Testany, result, Nowhere{}, kNoVolume, false);
  return result;
}

int wrap_Waitsome(int count, MPI_Request requests[], int* done, int indices[],
                  MPI_Status statuses[]) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Waitsome(count, requests, done, indices, statuses);
  Batch batch(call, count, requests, statuses);
  const int result = next.Waitsome(count, requests, done, indices, batch.statuses());
  call.stop();
  if (*done != MPI_UNDEFINED)
    for (int i = 0; i < *done; ++i) batch.done(result, indices[i], i);
  call.finish_memo(kRoutine_Waitsome, result, Nowhere{}, kNoVolume, false);
  return result;
}

int wrap_Testsome(int count, MPI_Request requests[], int* done, int indices[],
                  MPI_Status statuses[]) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Testsome(count, requests, done, indices, statuses);
  Batch batch(call, count, requests, statuses);
  const int result = next.Testsome(count, requests, done, indices, batch.statuses());
  call.stop();
  if (*done != MPI_UNDEFINED)
    for (int i = 0; i < *done; ++i) batch.done(result, indices[i], i);
  call.finish_memo(kRoutine_Testsome, result, Nowhere{}, kNoVolume, false);
  return result;
}

int wrap_Request_free(MPI_Request* request) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Request_free(request);
  Entry* const entry = entry_of(*request);
  if (entry != nullptr) {
    delete entry->repeated;
    entry->repeated = nullptr;
    preload::requests().remove(*entry);
  }
  const int result = next.Request_free(request);
  call.stop();
  call.finish_memo(kRoutine_Request_free, result, Nowhere{}, kNoVolume, false);
  return result;
}

int wrap_Cancel(MPI_Request* request) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Cancel(request);
  if (Entry* const entry = entry_of(*request))
    entry->cancelled.store(true, std::memory_order_relaxed);
  const int result = next.Cancel(request);
  call.stop();
  call.finish_memo(kRoutine_Cancel, result, Nowhere{}, kNoVolume, false);
  return result;
}

int wrap_Start(MPI_Request* request) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Start(request);
  const int result = next.Start(request);
  call.stop();
  Entry* const entry = entry_of(*request);
  if (entry == nullptr || entry->repeated == nullptr || result != MPI_SUCCESS) {
    call.finish_memo(kRoutine_Start, result, Nowhere{}, kNoVolume, false);
    return result;
  }
  entry->posted = call.begin();
  entry->slot = call.count(started(*entry, kRoutine_Start));
  return result;
}

// One call that starts several: counted once, with all their bytes; each is followed on its own.
int wrap_Startall(int count, MPI_Request requests[]) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Startall(count, requests);
  const int result = next.Startall(count, requests);
  call.stop();
  Key all;
  for (int i = 0; i < count && result == MPI_SUCCESS; ++i) {
    const Entry* const entry = entry_of(requests[i]);
    if (entry == nullptr || entry->repeated == nullptr) continue;
    const auto& key = entry->repeated->key;
    all.communicator = key.communicator;
    all.bytes += key.bytes;
    all.sent += key.sent;
    all.received += key.received;
  }
  Slot* const slot = call.finish(
      kRoutine_Startall, result, Nowhere{},
      [&](const Place&) {
        return Volume{all.bytes, all.sent, all.received};
      },
      false);
  for (int i = 0; i < count && result == MPI_SUCCESS; ++i)
    if (Entry* const entry = entry_of(requests[i])) {
      entry->posted = call.begin();
      entry->slot = slot;
    }
  return result;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace sinew::preload
