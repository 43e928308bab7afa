// An MPI program whose communication is known: mpi_calls MODE [NUMBER].
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

int rank, size;

// 1 to 5 GiB, to nobody: no memory is touched.
void big() {
  MPI_Datatype mebibyte;
  MPI_Type_contiguous(1 << 20, MPI_BYTE, &mebibyte);
  MPI_Type_commit(&mebibyte);
  char nothing = 0;
  for (int gib = 1; gib <= 5; ++gib) MPI_Bcast(&nothing, gib << 10, mebibyte, 0, MPI_COMM_SELF);
  MPI_Type_free(&mebibyte);
}

void threads(int calls) {
  std::vector<std::thread> four;
  for (int t = 0; t < 4; ++t)
    four.emplace_back([&] {
      int mine = 0;
      for (int i = 0; i < calls; ++i) MPI_Comm_rank(MPI_COMM_WORLD, &mine);
    });
  for (auto& thread : four) thread.join();
}

double now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

// Rank 0 comes 20 ms early to 50 allreduces. Each rank writes how long it waited by its own clock,
// more than that on a busy machine.
void skew() {
  constexpr int kTimes = 50;
  double value = 1, sum = 0;
  std::vector<double> came(kTimes), others(kTimes);
  for (int i = 0; i < kTimes; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) ::usleep(20'000);
    came[static_cast<std::size_t>(i)] = now_ns();
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Sendrecv(came.data(), kTimes, MPI_DOUBLE, 1 - rank, 0, others.data(), kTimes, MPI_DOUBLE,
               1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  double waited = 0;
  for (std::size_t i = 0; i < kTimes; ++i) waited += std::max(0.0, others[i] - came[i]);
  std::printf("waited %d %.0f\n", rank, waited);
}

// Rank 1 sends ten times 20 ms after rank 0 is there.
void late_sender() {
  int value = 0;
  for (int i = 0; i < 10; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      ::usleep(20'000);
      MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    } else if (rank == 0) {
      MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}

// Rank 0 does something else for 50 ms while a message comes.
void overlap() {
  int value = 0;
  MPI_Request request;
  if (rank == 0) {
    MPI_Irecv(&value, 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &request);
    ::usleep(50'000);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
  }
}

// A step of data-parallel training that agrees by many small allreduces.
void training_steps(int steps) {
  std::vector<double> data(100'000), sum(100'000);
  for (int i = 0; i < steps; ++i) {
    for (const int elements : {1, 1, 1, 1, 1, 705, 9391, 100'000})
      MPI_Allreduce(data.data(), sum.data(), elements, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

// An end without MPI_Finalize.
void end_badly(const std::string& how) {
  if (how == "abort") MPI_Abort(MPI_COMM_WORLD, 9);
  if (how == "exit") ::_exit(7);
  ::raise(how == "segfault" ? SIGSEGV : SIGKILL);
}

// Allreduces without end; how many are done stands in a file that outlives the process. With `how`
// a second thread ends the process, after a while and in the middle of whatever the first one does.
void call_until_the_end(const char* path, const std::string& how, int microseconds) {
  const int file = ::open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(std::uint64_t)) != 0) return;
  auto* const done = static_cast<volatile std::uint64_t*>(
      ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  if (!how.empty())
    std::thread([&how, microseconds] {
      ::usleep(static_cast<useconds_t>(microseconds));
      end_badly(how);
    }).detach();
  double value = 1, sum = 0;
  for (;;) {
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    *done = *done + 1;
    if (*done != 10) continue;
    std::puts("running");
    std::fflush(stdout);
  }
}

// So many equal calls, with nobody to wait for, then one each of so many kinds; rank 0 says what
// came of them. With `how` it ends right after that.
void many_calls(int calls, int kinds, const std::string& how) {
  double value = 1, sum = 0, total = 0;
  for (int i = 0; i < calls; ++i) {
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
    total += sum;
  }
  std::vector<char> bytes(static_cast<std::size_t>(kinds), static_cast<char>(rank + 1));
  for (int i = 1; i <= kinds; ++i) MPI_Bcast(bytes.data(), i, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("total %.0f, last %d\n", total, bytes.back());
  std::fflush(stdout);
  if (!how.empty()) end_badly(how);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "big";
  const int number = argc > 2 ? std::atoi(argv[2]) : 1000;
  if (mode == "threads" || mode == "forever") {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  } else {
    MPI_Init(&argc, &argv);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (mode == "big" || mode == "status") {
    big();
  } else if (mode == "threads") {
    threads(number);
  } else if (mode == "skew") {
    skew();
  } else if (mode == "late") {
    late_sender();
    overlap();
    MPI_Pcontrol(1);
    training_steps(number);
    MPI_Pcontrol(0);
  } else if (mode == "many" && argc > 3) {
    many_calls(number, std::atoi(argv[3]), argc > 4 ? argv[4] : "");
  } else if (mode == "forever" && argc > 2) {
    call_until_the_end(argv[2], argc > 4 ? argv[3] : "", argc > 4 ? std::atoi(argv[4]) : 0);
  } else {
    end_badly(mode);
  }
  MPI_Finalize();
  return mode == "status" || mode == "many" ? 3 : 0;
}
