// The smallest program: every rank contributes a vector and gets the sum.
//   sinew launch -n 4 -- ./example-allreduce
#include <cstdio>
#include <vector>

#include <sinew/sinew.hpp>

int main() try {
  sinew::Communicator comm = sinew::connect();
  std::vector<float> gradient(1'000'000, static_cast<float>(comm.rank() + 1));

  comm.allreduce(std::span<float>(gradient));

  const float expected = static_cast<float>(comm.size() * (comm.size() + 1)) / 2;
  std::printf("rank %d of %d: sum %.0f, expected %.0f\n", comm.rank(), comm.size(),
              static_cast<double>(gradient.back()), static_cast<double>(expected));
  return gradient.back() == expected ? 0 : 1;
} catch (const sinew::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
