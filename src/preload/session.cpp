#include "preload/session.hpp"

#include <dlfcn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

namespace sinew::preload {
namespace {

std::string trace_path(const std::string& folder) {
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  return folder + "/" + host + "." + std::to_string(::getpid()) + ".trace";
}

std::uint32_t hash_of(const std::vector<int>& ranks, std::uint32_t hash) noexcept {
  for (const int rank : ranks) {
    hash = (hash ^ static_cast<std::uint32_t>(rank)) * 0x9E3779B1U;
    hash ^= hash >> 15U;
  }
  return hash;
}

/// "0-3,8": short for the groups that programs make.
std::string ranges(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[i]);
    if (end - i > 1) text += '-' + std::to_string(ranks[end - 1]);
    i = end;
  }
  return text;
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::replace(text.begin(), text.end(), '\0', ' ');
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

/// "Open MPI v4.1.4", "MPICH Version: 4.0.2": the beginning of the first line.
std::string short_version(std::string text) {
  text.resize(std::min(text.find_first_of("\n,"), text.size()));
  std::replace(text.begin(), text.end(), '\t', ' ');
  text.erase(
      std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      text.end());
  return text;
}

/// What the kernel keeps time by: it has looked whether the processor's counter runs evenly.
std::string clock_source() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string text;
  std::getline(file, text);
  return text;
}

std::string seconds(const timeval& time) {
  auto micros = std::to_string(time.tv_usec);
  return std::to_string(time.tv_sec) + "." + std::string(6 - micros.size(), '0') + micros;
}

}  // namespace

Session::Session(Settings settings, Questions questions, Handles known)
    : ask(questions),
      handles(known),
      writer({.path = trace_path(settings.folder),
              .budget_bytes = settings.budget_bytes,
              .ticks = &trace::cycle_count}),
      settings_(std::move(settings)),
      noted_(kMostRoutines) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  ask.get_library_version(version, &length);
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  writer.note(trace::NoteKind::info, 0, "producer=mpi");
  writer.note(trace::NoteKind::info, 0, "mpi=" + short_version(version));
  writer.note(trace::NoteKind::info, 0, std::string("host=") + host);
  writer.note(trace::NoteKind::info, 0, "command=" + command_line());
  writer.note(trace::NoteKind::info, 0, "clocksource=" + clock_source());
  for (std::size_t i = 0; i < settings_.labels.size(); ++i)
    writer.note(trace::NoteKind::label, i + 1, settings_.labels[i].second);
}

Thread* Session::take_thread() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_threads_.empty()) {
      Thread* const thread = idle_threads_.back();
      idle_threads_.pop_back();
      return thread;
    }
  }
  return new (std::nothrow) Thread(writer);
}

void Session::give_thread(Thread* thread) noexcept {
  const std::lock_guard lock(mutex_);
  idle_threads_.push_back(thread);
}

bool Session::is_active() const noexcept {
  int begun = 0, ended = 0;
  ask.initialized(&begun);
  ask.finalized(&ended);
  return begun != 0 && ended == 0;
}

void Session::identify() noexcept {
  if (identified_.load(std::memory_order_acquire) || !is_active()) return;
  if (identified_.exchange(true, std::memory_order_acq_rel)) return;
  int size = 0;
  ask.comm_rank(handles.world, &rank_);
  ask.comm_size(handles.world, &size);
  ask.comm_group(handles.world, &world_group_);
  writer.note(trace::NoteKind::info, 0, "rank=" + std::to_string(rank_));
  writer.note(trace::NoteKind::info, 0, "size=" + std::to_string(size));
  writer.keep_time();
}

bool Session::is_wanted() const noexcept {
  if (rank_ < 0 || settings_.ranks.empty()) return true;
  return std::any_of(settings_.ranks.begin(), settings_.ranks.end(), [&](const auto& range) {
    return range.first <= rank_ && rank_ <= range.second;
  });
}

void Session::note_usage() noexcept {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  writer.note(trace::NoteKind::info, 0, "user_s=" + seconds(used.ru_utime));
  writer.note(trace::NoteKind::info, 0, "system_s=" + seconds(used.ru_stime));
  writer.note(trace::NoteKind::info, 0, "resident_kib=" + std::to_string(used.ru_maxrss));
  writer.note(trace::NoteKind::info, 0, "switches=" + std::to_string(used.ru_nivcsw));
  // Not opened, only asked for: where gradients travel by NCCL, MPI carries little of them.
  if (void* const nccl = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD)) {
    writer.note(trace::NoteKind::info, 0, "nccl=loaded");
    ::dlclose(nccl);
  }
}

void Session::note_routine(std::uint16_t routine, const char* name) noexcept {
  if (noted_[routine].exchange(true, std::memory_order_relaxed)) return;
  writer.note(trace::NoteKind::routine, routine, name);
}

std::uint16_t Session::region_of(const std::string& name) noexcept {
  const std::lock_guard lock(mutex_);
  const auto next = static_cast<std::uint16_t>(regions_.size() + 1);
  const auto [entry, is_new] = regions_.try_emplace(name, next);
  if (is_new) writer.note(trace::NoteKind::region, next, name);
  return entry->second;
}

std::uint8_t Session::label_of(int tag) const noexcept {
  for (std::size_t i = 0; i < settings_.labels.size(); ++i)
    if (settings_.labels[i].first == tag) return static_cast<std::uint8_t>(i + 1);
  return 0;
}

std::uint64_t Session::type_bytes(MPI_Datatype type) const noexcept {
  if (type == handles.no_type) return 0;
  MPI_Count bytes = 0;
  if (ask.type_size_x(type, &bytes) != MPI_SUCCESS || bytes < 0) return 0;
  return static_cast<std::uint64_t>(bytes);
}

std::uint64_t Session::status_bytes(const MPI_Status& status) const noexcept {
  MPI_Count bytes = 0;
  if (ask.get_elements_x(&status, handles.byte, &bytes) != MPI_SUCCESS || bytes < 0) return 0;
  return static_cast<std::uint64_t>(bytes);
}

std::vector<int> Session::world_ranks(MPI_Group group) const {
  int size = 0;
  ask.group_size(group, &size);
  std::vector<int> here(static_cast<std::size_t>(size)), there(here.size());
  for (int i = 0; i < size; ++i) here[static_cast<std::size_t>(i)] = i;
  if (size > 0) ask.group_translate_ranks(group, size, here.data(), world_group_, there.data());
  for (auto& rank : there)
    if (rank == MPI_UNDEFINED) rank = -1;  // of another world
  return there;
}

Place& Session::place(MPI_Comm comm) noexcept {
  const auto handle = number_of(comm);
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_handle_.find(handle);
    if (found != by_handle_.end()) return *found->second;
  }
  identify();
  int is_inter = 0;
  if (!is_active() || ask.comm_test_inter(comm, &is_inter) != MPI_SUCCESS) return nowhere;
  MPI_Group group{}, remote{};
  ask.comm_group(comm, &group);
  if (is_inter != 0) ask.comm_remote_group(comm, &remote);
  char name[MPI_MAX_OBJECT_NAME] = {};
  int length = 0;
  ask.comm_get_name(comm, name, &length);
  auto& made = make_place(handle, group, is_inter != 0 ? remote : group, name, is_inter != 0);
  made.is_inter = is_inter != 0;
  find_degrees(comm, made);
  ask.group_free(&group);
  if (is_inter != 0) ask.group_free(&remote);
  return made;
}

Place& Session::place_of_window(MPI_Win window) noexcept {
  const auto handle = ~std::uint64_t{number_of(window)};  // no communicator has it
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_handle_.find(handle);
    if (found != by_handle_.end()) return *found->second;
  }
  identify();
  MPI_Group group{};
  if (!is_active() || ask.win_get_group(window, &group) != MPI_SUCCESS) return nowhere;
  auto& made = make_place(handle, group, group, "window", 2);
  ask.group_free(&group);
  return made;
}

// The number says the same on every rank: the members, and how many places of these members came
// before. Making them is collective, so that all count alike.
Place& Session::make_place(std::uint64_t handle, MPI_Group group, MPI_Group remote,
                           const char* name, std::uint32_t salt) noexcept {
  auto made = std::make_unique<Place>();
  const auto members = world_ranks(group);
  ask.group_rank(group, &made->rank);
  made->size = static_cast<int>(members.size());
  made->world_rank = world_ranks(remote);
  made->others = static_cast<int>(made->world_rank.size());
  auto all = members;  // both groups of an inter-communicator see the same set
  if (salt == 1) all.insert(all.end(), made->world_rank.begin(), made->world_rank.end());
  std::sort(all.begin(), all.end());
  const auto hash = hash_of(all, salt);
  const std::lock_guard lock(mutex_);
  made->id = std::max(1U, hash_of({static_cast<int>(same_members_[hash]++)}, hash));
  writer.note(
      trace::NoteKind::communicator, made->id,
      std::string(name) + "\nsize=" + std::to_string(made->size) + "\nmembers=" + ranges(members));
  auto& place = *places_.emplace_back(std::move(made));
  by_handle_[handle] = &place;
  return place;
}

void Session::find_degrees(MPI_Comm comm, Place& place) const noexcept {
  int topology = MPI_UNDEFINED;
  if (place.is_inter || ask.topo_test(comm, &topology) != MPI_SUCCESS) return;
  if (topology == MPI_CART) {
    int dimensions = 0;
    ask.cartdim_get(comm, &dimensions);
    place.in_degree = place.out_degree = 2 * dimensions;
  } else if (topology == MPI_GRAPH) {
    ask.graph_neighbors_count(comm, place.rank, &place.in_degree);
    place.out_degree = place.in_degree;
  } else if (topology == MPI_DIST_GRAPH) {
    int weighted = 0;
    ask.dist_graph_neighbors_count(comm, &place.in_degree, &place.out_degree, &weighted);
  }
}

void Session::forget(std::uint64_t handle) noexcept {
  const std::lock_guard lock(mutex_);
  by_handle_.erase(handle);
}

}  // namespace sinew::preload
