// What Horovod does over MPI, without Horovod: gradients become ready one after the other; once in
// a cycle ranks ask each other, by an allreduce of 8 bytes, which of them all have; those are
// reduced. An MPI program of its own: nothing of Sinew is in it.
//   sinew profile -- mpirun -n 2 ./example-horovod-like-openmpi --steps 50 --late-us 500
// docs/profile-horovod-like.md tells what its profile says.
#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using std::chrono::microseconds;

struct Settings {
  int steps = 50;
  int cycle_us = 1000;  // Horovod's default
  int cycles = 31;      // that the backward pass takes
  int late_us = 0;      // that the last rank needs more in each cycle
};

/// Fused gradients of a model of 1.2 million parameters, the last layers first.
constexpr std::array<std::size_t, 3> kElements{1410, 18782, 1179788};

Settings read_settings(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i + 1 < argc; i += 2) {
    const int value = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--steps") == 0) settings.steps = value;
    if (std::strcmp(argv[i], "--cycle-us") == 0) settings.cycle_us = value;
    if (std::strcmp(argv[i], "--cycles") == 0) settings.cycles = value;
    if (std::strcmp(argv[i], "--late-us") == 0) settings.late_us = value;
  }
  return settings;
}

class Worker {
 public:
  explicit Worker(const Settings& settings) : settings_(settings) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    for (const auto elements : kElements) gradients_.emplace_back(elements, 1.0F);
  }

  void step() {
    std::uint64_t left = (1U << kElements.size()) - 1;
    for (int cycle = 1; left != 0; ++cycle) {
      std::this_thread::sleep_for(microseconds(settings_.cycle_us));
      if (rank_ == size_ - 1) std::this_thread::sleep_for(microseconds(settings_.late_us));
      const auto agreed = ask(left & ready(cycle));
      for (std::size_t i = 0; i < kElements.size(); ++i)
        if ((agreed >> i & 1U) != 0) reduce(gradients_[i]);
      left &= ~agreed;
    }
  }

  void report() const {
    if (rank_ == 0)
      std::printf("%d ranks, %d steps, %ld polls, %ld reductions\n", size_, settings_.steps, polls_,
                  reductions_);
  }

 private:
  /// The backward pass, as far as it has come: gradient i is ready after (i + 1) / 3 of it.
  [[nodiscard]] std::uint64_t ready(int cycle) const {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < kElements.size(); ++i)
      if (cycle >= settings_.cycles * static_cast<int>(i + 1) / 3) bits |= 1U << i;
    return bits;
  }

  std::uint64_t ask(std::uint64_t mine) {
    ++polls_;
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_UINT64_T, MPI_BAND, MPI_COMM_WORLD);
    return mine;
  }

  void reduce(std::vector<float>& gradient) {
    ++reductions_;
    MPI_Allreduce(MPI_IN_PLACE, gradient.data(), static_cast<int>(gradient.size()), MPI_FLOAT,
                  MPI_SUM, MPI_COMM_WORLD);
  }

  Settings settings_;
  int rank_ = 0, size_ = 1;
  std::vector<std::vector<float>> gradients_;
  long polls_ = 0, reductions_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const auto settings = read_settings(argc, argv);
  Worker worker(settings);
  for (int i = 0; i < settings.steps; ++i) worker.step();
  worker.report();
  MPI_Finalize();
  return 0;
}
