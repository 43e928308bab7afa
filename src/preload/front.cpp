// The library that is preloaded. It knows no MPI: every routine is a jump through a table, and the
// first call fills the table, with the wrappers for the MPI that the process has loaded or, when it
// is none we know, with the routines themselves.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

extern "C" {
extern void* sinew_slots[];  // generated, by routine
// Generated, one after the other, "" at the end.
extern const char sinew_names[];  // NOLINT(readability-identifier-naming)
[[gnu::visibility("hidden")]] void* sinew_resolve(std::size_t routine);
}

namespace {

pthread_once_t g_once = PTHREAD_ONCE_INIT;
void* g_mpi = nullptr;  // a library that was loaded where RTLD_NEXT does not look

/// A routine behind this library, or the MPI's data, which a program may have a copy of.
void* lookup(const char* name) {
  const bool is_routine = std::strstr(name, "MPI_") != nullptr;
  void* const found = ::dlsym(is_routine ? RTLD_NEXT : RTLD_DEFAULT, name);
  return found != nullptr || g_mpi == nullptr ? found : ::dlsym(g_mpi, name);
}

int try_object(dl_phdr_info* object, std::size_t, void*) {
  const char* const slash = std::strrchr(object->dlpi_name, '/');
  const char* const base = slash != nullptr ? slash + 1 : object->dlpi_name;
  if (std::strncmp(base, "libmpi", 6) != 0) return 0;
  void* const handle = ::dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return 0;
  if (::dlsym(handle, "PMPI_Get_library_version") == nullptr) return 0;
  g_mpi = handle;
  return 1;
}

/// "openmpi", "mpich", or null.
const char* kind_of_mpi() {
  using Version = int (*)(char*, int*);
  if (lookup("PMPI_Get_library_version") == nullptr) ::dl_iterate_phdr(&try_object, nullptr);
  const auto version = reinterpret_cast<Version>(lookup("PMPI_Get_library_version"));
  if (version == nullptr) return nullptr;
  static char text[8192 + 1];  // the longest of either MPI
  int length = 0;
  version(text, &length);
  if (std::strstr(text, "Open MPI") != nullptr) return "openmpi";
  // Their makers agreed with MPICH on one binary interface.
  for (const char* const name : {"MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH"})
    if (std::strstr(text, name) != nullptr) return "mpich";
  return nullptr;
}

void bind(const char* name, void* wrapper) {
  std::size_t routine = 0;
  for (const char* at = sinew_names; *at != '\0'; at += std::strlen(at) + 1, ++routine)
    if (std::strcmp(at, name) == 0) {
      sinew_slots[routine] = wrapper;
      return;
    }
}

void missing() {
  std::fputs("sinew: the program calls a routine that its MPI library does not have\n", stderr);
  ::_exit(127);
}

bool is_off() {
  const char* const value = std::getenv("SINEW_PROFILE");
  return value != nullptr && (std::strcmp(value, "0") == 0 || std::strcmp(value, "off") == 0);
}

/// The wrappers lie beside this library.
bool start_wrappers(const char* kind) {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<void*>(&sinew_resolve), &self) == 0) return false;
  const char* const slash = std::strrchr(self.dli_fname, '/');
  const int folder = slash != nullptr ? static_cast<int>(slash - self.dli_fname) : 1;
  char path[4096];
  std::snprintf(path, sizeof path, "%.*s/libsinew-profile-%s.so", folder,
                slash != nullptr ? self.dli_fname : ".", kind);
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    std::fprintf(stderr, "sinew: %s; not profiling\n", ::dlerror());
    return false;
  }
  using Start = int (*)(void* (*)(const char*), void (*)(const char*, void*));
  const auto start = reinterpret_cast<Start>(::dlsym(library, "sinew_profile_start"));
  return start != nullptr && start(&lookup, &bind) == 0;
}

void fill() {
  const char* const kind = kind_of_mpi();
  std::size_t routine = 0;
  for (const char* at = sinew_names; *at != '\0'; at += std::strlen(at) + 1, ++routine) {
    void* const found = lookup(at);
    sinew_slots[routine] = found != nullptr ? found : reinterpret_cast<void*>(&missing);
  }
  if (is_off()) return;
  if (kind == nullptr)
    std::fputs("sinew: no MPI that this profiler knows (Open MPI, MPICH); not profiling\n", stderr);
  else
    start_wrappers(kind);
}

}  // namespace

extern "C" void* sinew_resolve(std::size_t routine) {
  ::pthread_once(&g_once, &fill);
  return sinew_slots[routine];
}
