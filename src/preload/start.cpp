// The edge of a wrapper library: reads the environment, makes the session, hands out wrappers.
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "preload/completion.hpp"
#include "preload/lifetime.hpp"

namespace sinew::preload {

thread_local constinit Thread* t_active = nullptr;
std::atomic<bool> g_off{false};
std::atomic<std::uint64_t> g_epoch{1};
Next next{};

namespace {

struct Wrapped {
  const char* name;
  void* wrapper;
  void** next;
};

#include <preload/wrappers.inc>

// Made once and never destroyed: threads may call MPI until the very end of the process.
Session* g_session = nullptr;
Requests g_requests;
thread_local constinit Thread* t_thread = nullptr;
pthread_key_t g_thread_end;

void make_folders(const std::string& path) {
  for (std::size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at + 1);
    ::mkdir(path.substr(0, at).c_str(), 0777);
  }
}

std::string variable(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

/// "tag=1:INDEX,tag=2:VALUE"; what is not of this form is left out.
std::vector<std::pair<int, std::string>> labels_of(const std::string& text) {
  std::vector<std::pair<int, std::string>> labels;
  for (std::size_t at = 0; at < text.size() && labels.size() < 255;) {
    const auto end = std::min(text.find(',', at), text.size());
    const auto part = text.substr(at, end - at);
    const auto colon = part.find(':');
    if (part.starts_with("tag=") && colon != std::string::npos)
      labels.emplace_back(std::atoi(part.c_str() + 4), part.substr(colon + 1));
    at = end + 1;
  }
  return labels;
}

/// "0,2-3"; what is not of this form is left out.
std::vector<std::pair<int, int>> ranks_of(const std::string& text) {
  std::vector<std::pair<int, int>> ranges;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    const auto part = text.substr(at, end - at);
    const auto dash = part.find('-');
    const int first = std::atoi(part.c_str());
    if (!part.empty())
      ranges.emplace_back(first,
                          dash == std::string::npos ? first : std::atoi(part.c_str() + dash + 1));
    at = end + 1;
  }
  return ranges;
}

Settings read_settings() {
  Settings settings;
  settings.folder = variable("SINEW_PROFILE_DIR", "sinew-profile");
  const auto budget = std::strtoull(variable("SINEW_PROFILE_BUDGET", "0").c_str(), nullptr, 10);
  if (budget > 0) settings.budget_bytes = budget;
  settings.labels = labels_of(variable("SINEW_PROFILE_LABELS", ""));
  settings.mpitrace = read_mpitrace_settings();
  settings.ranks = ranks_of(variable("SINEW_PROFILE_RANKS", ""));
  make_folders(settings.folder);
  return settings;
}

// Calls of nothing, in the trace as routine 0: their distance is what a call costs besides itself.
void calibrate() noexcept {
  constexpr auto kNothing = static_cast<Routine>(0);
  {
    Call first(t_active);
    if (!first) return;
    first.stop();
    first.finish_memo(kNothing, MPI_SUCCESS, Nowhere{}, kNoVolume, false);
  }
  for (int i = 0; i < 64; ++i) {
    Repeat call(t_active, t_active->memos[kNothing]);
    call.finish(kNothing, MPI_SUCCESS);
  }
}

// The trace is not mapped in a child, and two processes would write one file.
void detach_child() {
  g_off.store(true, std::memory_order_relaxed);
  t_active = nullptr;
}

void end_thread(void* thread) {
  t_active = t_thread = nullptr;
  session().give_thread(static_cast<Thread*>(thread));
}

}  // namespace

void leave_out() noexcept {
  g_off.store(true, std::memory_order_relaxed);
  g_session->writer.close(false);
  ::unlink(g_session->writer.path().c_str());
}

Session& session() noexcept { return *g_session; }
Requests& requests() noexcept { return g_requests; }

Thread* Call::enter() noexcept {
  if (t_thread != nullptr || g_off.load(std::memory_order_relaxed)) return nullptr;
  t_thread = session().take_thread();
  if (t_thread == nullptr) return nullptr;
  t_thread->active = &t_active;
  ::pthread_setspecific(g_thread_end, t_thread);
  return t_thread;
}

namespace {

[[gnu::destructor]] void finish() {
  if (g_session == nullptr || g_off.load(std::memory_order_relaxed)) return;
  if (const auto missed = g_requests.missed(); missed > 0)
    g_session->writer.note(trace::NoteKind::info, 0,
                           "requests_not_followed=" + std::to_string(missed));
  int begun = 0, ended = 0;
  g_session->ask.initialized(&begun);
  g_session->ask.finalized(&ended);
  if (ended == 0) g_session->note_usage();
  // Whoever leaves MPI without a word may have threads that still call it: their calls count to the
  // last, as in a process that was killed.
  if (begun != 0 && ended == 0) {
    g_session->writer.keep_time();
    return;
  }
  g_session->writer.close(true);
}

}  // namespace
}  // namespace sinew::preload

/// Called once by the front library, before the first MPI call of the process. 0: profiling.
extern "C" [[gnu::visibility("default")]] int sinew_profile_start(void* (*lookup)(const char*),
                                                                  void (*bind)(const char*,
                                                                               void*)) {
  using namespace sinew::preload;
  Questions questions{};
  Handles handles{};
  if (!find_questions(lookup, questions, handles)) {
    std::fputs("sinew: this MPI library lacks what the profiler asks it; not profiling\n", stderr);
    return 1;
  }
  try {
    g_session = new Session(read_settings(), questions, handles);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sinew: %s; not profiling\n", error.what());
    return 1;
  }
  ::pthread_key_create(&g_thread_end, &end_thread);
  ::pthread_atfork(nullptr, nullptr, &detach_child);
  for (const auto& entry : kEntries) {
    *entry.next = lookup(entry.name);
    if (*entry.next == nullptr) continue;
    bind(entry.name, entry.wrapper);      // PMPI_...
    bind(entry.name + 1, entry.wrapper);  // MPI_...
  }
  calibrate();
  return 0;
}
