// Non-blocking messages around a ring: everyone sends and receives at once, then waits for both.
//   sinew launch -n 4 -- ./example-nonblocking
#include <array>
#include <cstdio>
#include <vector>

#include <sinew/sinew.hpp>

int main() try {
  sinew::Communicator comm = sinew::connect();
  const int left = (comm.rank() + comm.size() - 1) % comm.size();
  const int right = (comm.rank() + 1) % comm.size();
  const std::vector<float> mine(1024, static_cast<float>(comm.rank()));
  std::vector<float> theirs(mine.size());

  const std::array requests{comm.isend(std::span<const float>(mine), right, 20),
                            comm.irecv(std::span<float>(theirs), left, 20)};
  comm.wait_all(requests);

  std::printf("rank %d received %.0f from its left\n", comm.rank(), static_cast<double>(theirs[0]));
  return theirs[0] == static_cast<float>(left) ? 0 : 1;
} catch (const sinew::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
