// A program that uses MPI itself: it starts and ends it, and has traffic of its own on
// MPI_COMM_WORLD, with the widest receives there are. Compiled with each MPI.
#include <fmt/format.h>
#include <mpi.h>

#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sinew/sinew.hpp>

namespace {

struct World {
  int rank = 0, size = 1;
  [[nodiscard]] int right() const { return (rank + 1) % size; }
  [[nodiscard]] int left() const { return (rank + size - 1) % size; }
};

// A receive that would take anything is open while Sinew works; what it gets must be ours.
bool own_traffic_is_undisturbed(const World& world, sinew::Communicator& communicator) {
  bool good = true;
  for (int i = 0; i < 50; ++i) {
    std::vector<int> got(1000, -1), sent(1000, world.rank * 1000 + i);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(got.data(), 1000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    std::vector<std::int32_t> data(static_cast<std::size_t>(1 + i * 997 % 30'000), world.rank + 1);
    communicator.allreduce(std::span(data));
    MPI_Send(sent.data(), 1000, MPI_INT, world.right(), i, MPI_COMM_WORLD);
    MPI_Status status;
    MPI_Wait(&request, &status);
    good &= status.MPI_SOURCE == world.left() && status.MPI_TAG == i;
    good &= got.front() == world.left() * 1000 + i && got.back() == got.front();
    good &= data.back() == world.size * (world.size + 1) / 2;
    int sum = 0;
    MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    good &= sum == i * world.size;
  }
  return good;
}

// A program that promised MPI to use one thread only is held to it.
bool other_thread_is_refused() {
  std::string said = "nothing";
  std::thread([&] {
    try {
      sinew::connect({.transport = "mpi"});
    } catch (const sinew::Error& error) {
      said = error.what();
    }
  }).join();
  return said.starts_with("MPI was started with MPI_THREAD_FUNNELED");
}

}  // namespace

int main(int argc, char** argv) {
  const bool outlives = argc > 1 && std::strcmp(argv[1], "outlives") == 0;
  const bool funneled = argc > 1 && std::strcmp(argv[1], "funneled") == 0;
  int level = 0;
  MPI_Init_thread(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_SINGLE, &level);
  World world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world.size);
  int wrong = 0;
  const auto complain = [&](const char* what) {
    fmt::print("rank {}: {}\n", world.rank, what);
    wrong = 1;
  };
  if (level == MPI_THREAD_FUNNELED && !other_thread_is_refused())
    complain("a thread that may not use MPI did");
  std::optional<sinew::Communicator> communicator(sinew::connect({.transport = "mpi"}));
  if (communicator->rank() != world.rank || communicator->size() != world.size)
    complain("another place in Sinew's group than in MPI_COMM_WORLD");
  if (!own_traffic_is_undisturbed(world, *communicator)) complain("own traffic was disturbed");
  if (!outlives) communicator.reset();
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended != 0) complain("Sinew ended an MPI that it had not started");
  MPI_Finalize();
  if (outlives) {
    try {
      communicator->barrier();
      complain("an operation after MPI_Finalize went well");
    } catch (const sinew::Error&) {
    }
    communicator.reset();
  }
  return wrong;
}
