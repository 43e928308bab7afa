// The calls that begin and end MPI, communicators, windows and types, and MPI_Pcontrol.
#include "preload/lifetime.hpp"

#include <string>

namespace sinew::preload {
namespace {

void begin(Call& call, Routine routine, int result) noexcept {
  session().identify();
  call.finish(routine, result, Nowhere{}, kNoVolume, false);
  if (!session().is_wanted()) leave_out();
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): named after the routines
int wrap_Init(int* argc, char*** argv) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Init(argc, argv);
  const int result = next.Init(argc, argv);
  call.stop();
  begin(call, kRoutine_Init, result);
  return result;
}

int wrap_Init_thread(int* argc, char*** argv, int required, int* provided) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Init_thread(argc, argv, required, provided);
  const int result = next.Init_thread(argc, argv, required, provided);
  call.stop();
  begin(call, kRoutine_Init_thread, result);
  return result;
}

int wrap_Finalize() {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Finalize();
  session().note_usage();
  write_mpitrace_files(session(), session().settings().mpitrace);
  const int result = next.Finalize();
  call.stop();
  call.finish(kRoutine_Finalize, result, Nowhere{}, kNoVolume, false);
  session().writer.keep_time();
  return result;
}

#if MPI_VERSION >= 4
int wrap_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* made) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Session_init(info, handler, made);
  const int result = next.Session_init(info, handler, made);
  call.stop();
  call.finish(kRoutine_Session_init, result, Nowhere{}, kNoVolume, false);
  return result;
}

int wrap_Session_finalize(MPI_Session* ended) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Session_finalize(ended);
  session().note_usage();
  const int result = next.Session_finalize(ended);
  call.stop();
  call.finish(kRoutine_Session_finalize, result, Nowhere{}, kNoVolume, false);
  return result;
}
#endif

// Counted before it is made: it does not return.
int wrap_Abort(MPI_Comm comm, int status) {
  Call call(t_active);
  if (call) {
    session().note_usage();
    session().writer.note(trace::NoteKind::info, 0, "aborted=" + std::to_string(status));
    call.finish(kRoutine_Abort, MPI_SUCCESS, InComm{comm}, kNoVolume, false);
  }
  return next.Abort(comm, status);
}

// 0 ends a region, 1 and above begin one. What may follow the level cannot be known from here.
int wrap_Pcontrol(const int level, ...) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Pcontrol(level);
  const int result = next.Pcontrol(level);
  call.stop();
  auto& state = session();
  state.region = level <= 0 ? std::uint16_t{0} : state.region_of(std::to_string(level));
  g_epoch.fetch_add(1, std::memory_order_relaxed);  // memos hold slots of the last region
  call.finish(kRoutine_Pcontrol, result, Nowhere{}, kNoVolume, false);
  return result;
}

// A freed handle may come again and mean something else, so that what is known of it goes first.
int wrap_Comm_free(MPI_Comm* comm) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Comm_free(comm);
  auto& place = session().place(*comm);
  session().forget(number_of(*comm));
  const int result = next.Comm_free(comm);
  call.stop();
  g_epoch.fetch_add(1, std::memory_order_relaxed);
  call.finish_at(kRoutine_Comm_free, place);
  return result;
}

int wrap_Comm_disconnect(MPI_Comm* comm) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Comm_disconnect(comm);
  auto& place = session().place(*comm);
  session().forget(number_of(*comm));
  const int result = next.Comm_disconnect(comm);
  call.stop();
  g_epoch.fetch_add(1, std::memory_order_relaxed);
  call.finish_at(kRoutine_Comm_disconnect, place);
  return result;
}

int wrap_Win_free(MPI_Win* window) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Win_free(window);
  auto& place = session().place_of_window(*window);
  session().forget(~std::uint64_t{number_of(*window)});
  const int result = next.Win_free(window);
  call.stop();
  g_epoch.fetch_add(1, std::memory_order_relaxed);
  call.finish_at(kRoutine_Win_free, place);
  return result;
}

int wrap_Type_free(MPI_Datatype* type) {
  Call call(t_active);
  if (!call) [[unlikely]]
    return next.Type_free(type);
  const int result = next.Type_free(type);
  call.stop();
  g_epoch.fetch_add(1, std::memory_order_relaxed);
  call.finish(kRoutine_Type_free, result, Nowhere{}, kNoVolume, false);
  return result;
}
// NOLINTEND(readability-identifier-naming)

}  // namespace sinew::preload
