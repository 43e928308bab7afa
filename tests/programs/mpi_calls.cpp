// An MPI program whose communication is known: mpi_calls MODE. In the mode `classes` each rank
// writes what it called and moved, counted by hand, for tests to compare with what a profiler saw.
#include <mpi.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

int rank, size;

struct Expected {
  std::uint64_t calls = 0, sent = 0, received = 0;
};
std::map<std::string, Expected> expected;

void expect(const char* routine, std::uint64_t sent, std::uint64_t received,
            std::uint64_t calls = 1) {
  auto& sum = expected[routine];
  sum.calls += calls;
  sum.sent += sent;
  sum.received += received;
}

void print_expected() {
  std::string text;
  for (const auto& [routine, sum] : expected)
    text += "expect " + routine + " " + std::to_string(sum.calls) + " " + std::to_string(sum.sent) +
            " " + std::to_string(sum.received) + "\n";
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::vector<int> buffer(std::size_t elements) { return std::vector<int>(elements, 1); }

// Rank 0 sends to rank 1, in every way there is.
void point_to_point() {
  auto data = buffer(1000);
  MPI_Status status;
  if (rank == 0) {
    MPI_Send(data.data(), 10, MPI_INT, 1, 1, MPI_COMM_WORLD);
    expect("MPI_Send", 40, 0);
    MPI_Ssend(data.data(), 20, MPI_INT, 1, 2, MPI_COMM_WORLD);
    expect("MPI_Ssend", 80, 0);
    MPI_Send(data.data(), 30, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD);
    expect("MPI_Send", 0, 0);
    std::array<MPI_Request, 2> requests;
    MPI_Isend(data.data(), 40, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data.data(), 50, MPI_INT, 1, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    expect("MPI_Isend", 360, 0, 2);
    expect("MPI_Waitall", 0, 0);
    MPI_Request repeated;
    MPI_Send_init(data.data(), 60, MPI_INT, 1, 5, MPI_COMM_WORLD, &repeated);
    expect("MPI_Send_init", 0, 0);
    for (int i = 0; i < 3; ++i) {
      MPI_Start(&repeated);
      MPI_Wait(&repeated, MPI_STATUS_IGNORE);
    }
    expect("MPI_Start", 720, 0, 3);
    expect("MPI_Wait", 0, 0, 3);
    MPI_Request_free(&repeated);
    expect("MPI_Request_free", 0, 0);
    MPI_Send(data.data(), 70, MPI_INT, 1, 6, MPI_COMM_WORLD);
    expect("MPI_Send", 280, 0);
    MPI_Datatype strided;
    MPI_Type_vector(5, 2, 4, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    MPI_Send(data.data(), 3, strided, 1, 7, MPI_COMM_WORLD);
    expect("MPI_Send", 120, 0);  // 5 * 2 integers, three times; the gaps do not travel
    MPI_Type_free(&strided);
    expect("MPI_Type_free", 0, 0);
  } else if (rank == 1) {
    MPI_Recv(data.data(), 1000, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("MPI_Recv", 0, 40);  // what came, not what there was room for
    MPI_Recv(data.data(), 1000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    expect("MPI_Recv", 0, 80);
    std::array<MPI_Request, 2> requests;
    MPI_Irecv(data.data(), 500, MPI_INT, 0, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(data.data() + 500, 500, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    expect("MPI_Irecv", 0, 360, 2);
    expect("MPI_Waitall", 0, 0);
    MPI_Request repeated;
    MPI_Recv_init(data.data(), 100, MPI_INT, 0, 5, MPI_COMM_WORLD, &repeated);
    expect("MPI_Recv_init", 0, 0);
    for (int i = 0; i < 3; ++i) {
      MPI_Start(&repeated);
      MPI_Wait(&repeated, MPI_STATUS_IGNORE);
    }
    expect("MPI_Start", 0, 720, 3);
    expect("MPI_Wait", 0, 0, 3);
    MPI_Request_free(&repeated);
    expect("MPI_Request_free", 0, 0);
    MPI_Message message;
    MPI_Mprobe(0, 6, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(data.data(), 1000, MPI_INT, &message, MPI_STATUS_IGNORE);
    expect("MPI_Mprobe", 0, 0);
    expect("MPI_Mrecv", 0, 280);
    MPI_Recv(data.data(), 1000, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("MPI_Recv", 0, 120);
    MPI_Request never;
    MPI_Irecv(data.data(), 10, MPI_INT, 0, 99, MPI_COMM_WORLD, &never);
    MPI_Cancel(&never);
    MPI_Wait(&never, MPI_STATUS_IGNORE);
    expect("MPI_Irecv", 0, 0);
    expect("MPI_Cancel", 0, 0);
    expect("MPI_Wait", 0, 0);
  }
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  auto other = buffer(1000);
  MPI_Sendrecv(data.data(), 25, MPI_INT, right, 8, other.data(), 1000, MPI_INT, left, 8,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  expect("MPI_Sendrecv", 100, 100);
  MPI_Request request;
  MPI_Irecv(other.data(), 11, MPI_INT, left, 9, MPI_COMM_WORLD, &request);
  MPI_Send(data.data(), 11, MPI_INT, right, 9, MPI_COMM_WORLD);
  int index = -1;
  MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
  expect("MPI_Irecv", 0, 44);
  expect("MPI_Send", 44, 0);
  expect("MPI_Waitany", 0, 0);
}

void collectives() {
  const auto p = static_cast<std::uint64_t>(size);
  const auto n = static_cast<std::size_t>(size);
  auto in = buffer(100 * n), out = buffer(100 * n);
  const bool root = rank == 1;
  MPI_Barrier(MPI_COMM_WORLD);
  expect("MPI_Barrier", 0, 0);
  MPI_Bcast(in.data(), 100, MPI_INT, 1, MPI_COMM_WORLD);
  expect("MPI_Bcast", root ? 400 : 0, root ? 0 : 400);
  MPI_Reduce(in.data(), out.data(), 50, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
  expect("MPI_Reduce", 200, root ? 200 : 0);
  MPI_Allreduce(MPI_IN_PLACE, out.data(), 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Allreduce", 64, 64);
  MPI_Scan(in.data(), out.data(), 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Scan", 20, 20);
  MPI_Exscan(in.data(), out.data(), 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Exscan", 20, rank == 0 ? 0 : 20);
  // Arguments that mean nothing on a rank may be anything.
  MPI_Gather(in.data(), 10, MPI_INT, root ? out.data() : nullptr, root ? 10 : -7,
             root ? MPI_INT : MPI_DATATYPE_NULL, 1, MPI_COMM_WORLD);
  expect("MPI_Gather", 40, root ? 40 * p : 0);
  MPI_Gather(root ? MPI_IN_PLACE : static_cast<void*>(in.data()), root ? 0 : 10,
             root ? MPI_DATATYPE_NULL : MPI_INT, root ? out.data() : nullptr, 10,
             root ? MPI_INT : MPI_DATATYPE_NULL, 1, MPI_COMM_WORLD);
  expect("MPI_Gather", 40, root ? 40 * p : 0);
  MPI_Scatter(root ? in.data() : nullptr, root ? 10 : 0, root ? MPI_INT : MPI_DATATYPE_NULL,
              out.data(), 10, MPI_INT, 1, MPI_COMM_WORLD);
  expect("MPI_Scatter", root ? 40 * p : 0, 40);
  MPI_Allgather(in.data(), 10, MPI_INT, out.data(), 10, MPI_INT, MPI_COMM_WORLD);
  expect("MPI_Allgather", 40, 40 * p);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out.data(), 10, MPI_INT, MPI_COMM_WORLD);
  expect("MPI_Allgather", 40, 40 * p);
  MPI_Alltoall(in.data(), 10, MPI_INT, out.data(), 10, MPI_INT, MPI_COMM_WORLD);
  expect("MPI_Alltoall", 40 * p, 40 * p);
  std::vector<int> counts(n), places(n);
  int total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    counts[i] = static_cast<int>(i) + 1;
    places[i] = total;
    total += counts[i];
  }
  const auto all = static_cast<std::uint64_t>(total) * 4;
  const auto own = static_cast<std::uint64_t>(rank + 1) * 4;
  MPI_Allgatherv(in.data(), rank + 1, MPI_INT, out.data(), counts.data(), places.data(), MPI_INT,
                 MPI_COMM_WORLD);
  expect("MPI_Allgatherv", own, all);
  MPI_Gatherv(in.data(), rank + 1, MPI_INT, out.data(), root ? counts.data() : nullptr,
              root ? places.data() : nullptr, MPI_INT, 1, MPI_COMM_WORLD);
  expect("MPI_Gatherv", own, root ? all : 0);
  MPI_Scatterv(in.data(), root ? counts.data() : nullptr, root ? places.data() : nullptr, MPI_INT,
               out.data(), rank + 1, MPI_INT, 1, MPI_COMM_WORLD);
  expect("MPI_Scatterv", root ? all : 0, own);
  MPI_Reduce_scatter(in.data(), out.data(), counts.data(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Reduce_scatter", all, own);
  MPI_Reduce_scatter_block(in.data(), out.data(), 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Reduce_scatter_block", 12 * p, 12);
  const std::vector<int> same(n, rank + 1);
  std::vector<int> apart(n);
  for (std::size_t i = 0; i < n; ++i) apart[i] = static_cast<int>(i) * 10;
  MPI_Alltoallv(in.data(), same.data(), apart.data(), MPI_INT, out.data(), counts.data(),
                apart.data(), MPI_INT, MPI_COMM_WORLD);
  expect("MPI_Alltoallv", own * p, all);
  MPI_Request request;
  MPI_Iallreduce(in.data(), out.data(), 7, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect("MPI_Iallreduce", 28, 28);
  expect("MPI_Wait", 0, 0);
}

void communicators_and_windows() {
  MPI_Comm half, cart;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  expect("MPI_Comm_split", 0, 0);
  double value = 1, sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, half);
  expect("MPI_Allreduce", 8, 8);
  MPI_Comm_free(&half);
  expect("MPI_Comm_free", 0, 0);
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &cart);
  expect("MPI_Cart_create", 0, 0);
  std::array<int, 2> near{};
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, near.data(), 1, MPI_INT, cart);
  expect("MPI_Neighbor_allgather", 8, 8);  // to the left and to the right
  MPI_Comm_free(&cart);
  expect("MPI_Comm_free", 0, 0);
  std::vector<int> memory(100);
  MPI_Win window;
  MPI_Win_create(memory.data(), 400, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  expect("MPI_Win_create", 0, 0);
  MPI_Win_fence(0, window);
  auto data = buffer(10), back = buffer(10);
  MPI_Put(data.data(), 10, MPI_INT, (rank + 1) % size, 0, 10, MPI_INT, window);
  expect("MPI_Put", 40, 0);
  MPI_Win_fence(0, window);
  MPI_Get(back.data(), 5, MPI_INT, (rank + 1) % size, 0, 5, MPI_INT, window);
  expect("MPI_Get", 0, 20);
  MPI_Win_fence(0, window);
  expect("MPI_Win_fence", 0, 0, 3);
  MPI_Win_free(&window);
  expect("MPI_Win_free", 0, 0);
}

void large_counts() {
#if MPI_VERSION >= 4
  auto in = buffer(10), out = buffer(10);
  MPI_Allreduce_c(in.data(), out.data(), 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect("MPI_Allreduce_c", 40, 40);
  MPI_Request request;
  MPI_Allreduce_init(in.data(), out.data(), 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &request);
  expect("MPI_Allreduce_init", 0, 0);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect("MPI_Start", 40, 40);
  expect("MPI_Wait", 0, 0);
  MPI_Request_free(&request);
  expect("MPI_Request_free", 0, 0);
#endif
}

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

// `calls` allreduces, a line, then an end without MPI_Finalize.
void end_badly(const std::string& how, int calls) {
  double value = 1, sum = 0;
  for (int i = 0; i < calls; ++i)
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF);
  if (how == "abort") MPI_Abort(MPI_COMM_WORLD, 9);
  if (how == "exit") ::_exit(7);
  ::raise(how == "segfault" ? SIGSEGV : SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "classes";
  const int number = argc > 2 ? std::atoi(argv[2]) : 1000;
  if (mode == "threads") {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  } else {
    MPI_Init(&argc, &argv);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  expect(mode == "threads" ? "MPI_Init_thread" : "MPI_Init", 0, 0);
  expect("MPI_Comm_rank", 0, 0);
  expect("MPI_Comm_size", 0, 0);
  if (mode == "classes") {
    point_to_point();
    collectives();
    communicators_and_windows();
    large_counts();
  } else if (mode == "big" || mode == "status") {
    big();
  } else if (mode == "threads") {
    threads(number);
  } else if (mode == "skew") {
    skew();
  } else {
    end_badly(mode, number);
  }
  expect("MPI_Finalize", 0, 0);
  if (mode == "classes") print_expected();
  MPI_Finalize();
  return mode == "status" ? 3 : 0;
}
