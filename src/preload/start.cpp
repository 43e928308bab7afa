// The edge of a wrapper library: reads the environment, makes the session, hands out wrappers.
#include <pthread.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "preload/completion.hpp"
#include "preload/lifetime.hpp"

namespace sinew::preload {

thread_local constinit Thread* t_active = nullptr;
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
std::atomic<bool> g_off{false};
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

Settings read_settings() {
  Settings settings;
  settings.folder = variable("SINEW_PROFILE_DIR", "sinew-profile");
  const auto budget = std::strtoull(variable("SINEW_PROFILE_BUDGET", "0").c_str(), nullptr, 10);
  if (budget > 0) settings.budget_bytes = budget;
  settings.labels = labels_of(variable("SINEW_PROFILE_LABELS", ""));
  settings.mpitrace = read_mpitrace_settings();
  make_folders(settings.folder);
  return settings;
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

Session& session() noexcept { return *g_session; }
Requests& requests() noexcept { return g_requests; }

Thread* Call::enter() noexcept {
  if (t_thread != nullptr || g_off.load(std::memory_order_relaxed)) return nullptr;
  t_thread = session().take_thread();
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
  g_session->writer.close(begun == 0 || ended != 0);
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
  return 0;
}
