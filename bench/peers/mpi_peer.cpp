// MPI as a contender: the same source for every MPI, compiled once with each one's headers.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <limits>
#include <stdexcept>
#include <vector>

#include "measure/measure.hpp"

namespace sinew::bench {
namespace {

int as_int(std::uint64_t elements) {
  if (elements > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    throw std::runtime_error("MPI counts are ints; the case has more elements");
  }
  return static_cast<int>(elements);
}

/// Counts and where each part begins, for the v-variants.
struct Parts {
  std::vector<int> counts, starts;

  void add(std::uint64_t elements) {
    starts.push_back(counts.empty() ? 0 : starts.back() + counts.back());
    counts.push_back(as_int(elements));
  }
};

class MpiContender final : public Contender {
 public:
  explicit MpiContender(Seat seat) : seat_(seat) {}

  bool supports(const Case& what) override {
    return what.element_bytes == sizeof(float) && what.options.empty();
  }

  void prepare(const Case& what, const Buffers& buffers) override {
    what_ = what;
    in_ = buffers.input.data();
    out_ = buffers.output.data();
    vector_ = as_int(what.bytes / sizeof(float));
    part_ = as_int(elements_per_rank(what, seat_.ranks));
    sent_ = received_ = {};
    if (what.collective == Collective::allgatherv) {
      for (const auto count : what.counts) received_.add(count);
    }
    if (what.collective == Collective::alltoallv) {
      for (int peer = 0; peer < seat_.ranks; ++peer) {
        sent_.add(pair_elements(what, seat_.rank, peer, seat_.ranks));
        received_.add(pair_elements(what, peer, seat_.rank, seat_.ranks));
      }
    }
  }

  void run() override {
    if (call() != MPI_SUCCESS) throw std::runtime_error("the MPI call returned an error");
  }

 private:
  int call() {
    const auto type = MPI_FLOAT;
    const auto world = MPI_COMM_WORLD;
    const auto rank = static_cast<std::size_t>(seat_.rank);
    switch (what_.collective) {
      case Collective::allreduce:
        return MPI_Allreduce(what_.in_place ? MPI_IN_PLACE : in_, out_, vector_, type, MPI_SUM,
                             world);
      case Collective::reduce:
        return MPI_Reduce(in_, out_, vector_, type, MPI_SUM, what_.root, world);
      case Collective::broadcast:
        return MPI_Bcast(out_, vector_, type, what_.root, world);
      case Collective::allgather:
        return MPI_Allgather(in_, part_, type, out_, part_, type, world);
      case Collective::allgatherv:
        return MPI_Allgatherv(in_, received_.counts[rank], type, out_, received_.counts.data(),
                              received_.starts.data(), type, world);
      case Collective::reduce_scatter:
        return MPI_Reduce_scatter_block(in_, out_, part_, type, MPI_SUM, world);
      case Collective::alltoall:
        return MPI_Alltoall(in_, part_, type, out_, part_, type, world);
      case Collective::alltoallv:
        return MPI_Alltoallv(in_, sent_.counts.data(), sent_.starts.data(), type, out_,
                             received_.counts.data(), received_.starts.data(), type, world);
      case Collective::scatter:
        return MPI_Scatter(in_, part_, type, out_, part_, type, what_.root, world);
      case Collective::gather:
        return MPI_Gather(in_, part_, type, out_, part_, type, what_.root, world);
      case Collective::barrier:
        break;
    }
    return MPI_Barrier(world);
  }

  Seat seat_;
  Case what_;
  void* in_ = nullptr;
  void* out_ = nullptr;
  int vector_ = 0;  // elements
  int part_ = 0;    // elements
  Parts sent_, received_;
};

int play(const char* control_path) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    Control control(control_path, rank);
    MpiContender contender(control.seat());
    serve(control, contender);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 1;
  }
}

}  // namespace
}  // namespace sinew::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: mpirun -n RANKS %s CONTROL (started by sinew bench)\n", argv[0]);
    return 2;
  }
  MPI_Init(&argc, &argv);
  const int status = sinew::bench::play(argv[1]);
  if (status != 0) ::_exit(status);  // MPI_Finalize would wait for ranks that may never come
  MPI_Finalize();
  return 0;
}
