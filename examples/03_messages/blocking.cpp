// Blocking messages: the next line runs when the data may be reused (send) or is there (recv).
//   sinew launch -n 2 -- ./example-blocking
#include <array>
#include <cstdint>
#include <cstdio>
#include <numeric>

#include <sinew/sinew.hpp>

int main() try {
  sinew::Communicator comm = sinew::connect();
  if (comm.size() < 2) return 0;
  std::array<std::int32_t, 8> numbers{};
  if (comm.rank() == 0) {
    std::iota(numbers.begin(), numbers.end(), 0);
    comm.send(std::span<const std::int32_t>(numbers), 1, 10);
  }
  if (comm.rank() == 1) {
    comm.recv(std::span<std::int32_t>(numbers), 0, 10);
    std::printf("the last of eight numbers is %d\n", numbers.back());
    return numbers.back() == 7 ? 0 : 1;
  }
  return 0;
} catch (const sinew::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
