// Tags are independent streams: each pair of ranks keeps the order of messages of one tag, and a
// receive takes only its own tag, in whatever order they were sent.
//   sinew launch -n 2 -- ./example-tags
#include <array>
#include <cstdint>
#include <cstdio>

#include <sinew/sinew.hpp>

int main() try {
  constexpr std::uint32_t kReducePhase = 31, kBroadcastPhase = 32;
  sinew::Communicator comm = sinew::connect();
  if (comm.size() < 2) return 0;
  if (comm.rank() == 0) {
    const std::array<std::int32_t, 1> first{100}, second{200};
    comm.send(std::span<const std::int32_t>(first), 1, kReducePhase);
    comm.send(std::span<const std::int32_t>(second), 1, kBroadcastPhase);
  }
  if (comm.rank() == 1) {
    std::array<std::int32_t, 1> first{}, second{};
    comm.recv(std::span<std::int32_t>(second), 0, kBroadcastPhase);  // sent last, taken first
    comm.recv(std::span<std::int32_t>(first), 0, kReducePhase);
    std::printf("reduce phase %d, broadcast phase %d\n", first[0], second[0]);
    return first[0] == 100 && second[0] == 200 ? 0 : 1;
  }
  return 0;
} catch (const sinew::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
