// MPI in bench/faults: errors are asked for as return values, which is the most a user can do.
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "job.hpp"

namespace sinew::faults {
namespace {

void check(int status) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw std::runtime_error(text.data());
}

class MpiJob final : public Job {
 public:
  MpiJob() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void allreduce(float* data, std::size_t elements, Op op, unsigned /*tag*/) override {
    check(MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(elements), MPI_FLOAT,
                        op == Op::sum ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD));
  }
  void allreduce(std::int32_t* data, std::size_t elements) override {
    check(MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(elements), MPI_INT, MPI_SUM,
                        MPI_COMM_WORLD));
  }
  void broadcast(float* data, std::size_t elements, int root) override {
    check(MPI_Bcast(data, static_cast<int>(elements), MPI_FLOAT, root, MPI_COMM_WORLD));
  }

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace
}  // namespace sinew::faults

int main(int argc, char** argv) {
  const auto orders = sinew::faults::Orders::read(argc, argv);
  MPI_Init(&argc, &argv);
  sinew::faults::MpiJob job;
  const int status = sinew::faults::play(job, orders);
  if (status != 0) ::_exit(status);  // MPI_Finalize would wait for ranks that may never come
  MPI_Finalize();
  return 0;
}
