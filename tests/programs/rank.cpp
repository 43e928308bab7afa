// Joins the group that its environment describes, sums something, and says so.
//   sinew-test-rank [seconds that joining may take] [forever: goes on until something breaks]
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <sinew/sinew.hpp>

int main(int argc, char** argv) try {
  sinew::Options options;
  if (argc > 1) options.timeout = std::chrono::milliseconds(std::atoi(argv[1]) * 1000);
  auto comm = sinew::connect(options);
  std::vector<double> data(1000, comm.rank() + 1);
  comm.allreduce(std::span<double>(data));
  const bool right = data[999] == comm.size() * (comm.size() + 1) / 2.0;
  const auto transport = comm.transport();
  std::printf("rank %d of %d over %.*s: %s\n", comm.rank(), comm.size(),
              static_cast<int>(transport.size()), transport.data(), right ? "right" : "wrong");
  if (argc > 2 && argv[2] == std::string_view("forever")) {
    std::fflush(stdout);
    while (true) comm.allreduce(std::span<double>(data), sinew::ReduceOp::avg);
  }
  return right ? 0 : 4;
} catch (const sinew::Error& error) {
  std::printf("error: %s\n", error.what());
  return 1;
}
