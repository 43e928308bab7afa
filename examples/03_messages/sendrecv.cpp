// A pairwise exchange that cannot deadlock: sendrecv starts both before it waits for either.
//   sinew launch -n 4 -- ./example-sendrecv
#include <array>
#include <cstdint>
#include <cstdio>

#include <sinew/sinew.hpp>

int main() try {
  sinew::Communicator comm = sinew::connect();
  const int to = (comm.rank() + 1) % comm.size();
  const int from = (comm.rank() + comm.size() - 1) % comm.size();
  const std::array<std::int32_t, 1> out{comm.rank()};
  std::array<std::int32_t, 1> in{};

  comm.sendrecv(std::span<const std::int32_t>(out), to, std::span<std::int32_t>(in), from, 30);

  std::printf("rank %d sent %d and received %d\n", comm.rank(), out[0], in[0]);
  return in[0] == from ? 0 : 1;
} catch (const sinew::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
