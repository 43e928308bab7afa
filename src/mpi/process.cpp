#include "mpi/process.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <system_error>
#include <thread>

#include <sinew/error.hpp>
#include <sinew/transport.hpp>

namespace sinew::mpi {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 5s;  // with ranks of a job that failed
constexpr auto kLongestFinalize = 10s;
constexpr auto kLastMessages = 500ms;  // to be taken off the wire, when all have come to the end

void doze() noexcept {
  const timespec nap{0, 200'000};
  nanosleep(&nap, nullptr);
}

}  // namespace

Process& Process::get() {
  // Never destroyed: communicators in static variables may outlive any other order.
  static Process& process = *new Process;
  return process;
}

bool Process::is_alive() noexcept {
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started != 0 && ended == 0;
}

void Process::start() {
  const std::scoped_lock lock(mutex_);
  int started = 0, ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  if (ended != 0)
    throw Error(Errc::invalid_argument,
                "MPI_Finalize was called; a communicator over MPI must be made before");
  if (started == 0) {
    int granted = 0;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &granted) != MPI_SUCCESS)
      throw Error(Errc::system, "MPI_Init_thread failed");
    started_here_ = true;
    on_exit([](int status, void*) { get().end(status); }, nullptr);
  }
  check_thread();
  if (!watched_) watch_end();
}

// What a program asked of MPI binds this thread, too: to break it is a crash at some later time.
void Process::check_thread() {
  int level = MPI_THREAD_SINGLE, is_main = 0;
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&is_main);
  if (level >= MPI_THREAD_SERIALIZED || is_main != 0) return;
  throw Error(
      Errc::unsupported,
      fmt::format("MPI was started with {}, so that only its main thread may use it: make "
                  "communicators there, or start MPI by MPI_Init_thread with "
                  "MPI_THREAD_MULTIPLE",
                  level == MPI_THREAD_SINGLE ? "MPI_THREAD_SINGLE" : "MPI_THREAD_FUNNELED"));
}

// MPI_Finalize deletes the attributes of MPI_COMM_SELF before anything else, which is the
// standard's way to be told while everything still works.
void Process::watch_end() {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(
      MPI_COMM_NULL_COPY_FN,
      [](MPI_Comm, int, void*, void*) {
        get().close_all();
        return MPI_SUCCESS;
      },
      &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  MPI_Comm_free_keyval(&key);
  watched_ = true;
}

void Process::add(Open& open) {
  const std::scoped_lock lock(mutex_);
  open_.push_back(&open);
}

void Process::remove(Open& open) noexcept {
  const std::scoped_lock lock(mutex_);
  failed_ |= open.failed();
  std::erase(open_, &open);
}

void Process::add(std::unique_ptr<Leaving> leaving) noexcept {
  const std::scoped_lock lock(mutex_);
  leaving_.push_back(std::move(leaving));
}

bool Process::poll_leaving() noexcept {
  const std::scoped_lock lock(mutex_);
  std::erase_if(leaving_, [](const auto& leaving) { return leaving->poll(); });
  return leaving_.empty();
}

void Process::close_all() noexcept {
  while (true) {
    Open* open = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      if (open_.empty()) break;
      open = open_.back();
    }
    open->close();  // removes itself
  }
  const auto deadline = Clock::now() + kLastMessages;
  while (!poll_leaving() && Clock::now() < deadline) doze();
}

// As long as it takes, as in MPI_Finalize, but asleep. After a failure some may never come.
bool Process::everyone_came() noexcept {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return false;
  const auto deadline = Clock::now() + kPatience;
  int done = 0;
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
    if (failed_ && Clock::now() > deadline) return false;
    poll_leaving();
    doze();
  }
  return done != 0;
}

// MPICH 4.0 over the tcp of UCX may not come back from MPI_Finalize, whatever the program did. All
// ranks are at the end, so that nothing is lost by leaving.
void Process::leave_in_time(int status) noexcept {
  try {
    std::thread([status] {
      std::this_thread::sleep_for(kLongestFinalize);
      std::fflush(nullptr);
      ::_exit(status);
    }).detach();
  } catch (const std::system_error&) {  // no thread to be had: as without
  }
}

// A rank that leaves without MPI_Finalize makes mpirun end the job, which is right when others are
// stuck.
void Process::end(int status) noexcept {
  if (!is_alive()) return;
  for (auto* open : std::vector<Open*>(open_)) open->close();
  if (!everyone_came()) return;
  leave_in_time(status);
  MPI_Finalize();
}

}  // namespace sinew::mpi
