// An algorithm of your own, without touching the library: write it as a schedule, have it verified,
// run it by name. This one is a star: everyone sends to rank 0, which adds and answers.
//   sinew launch -n 4 -- ./example-own_algorithm
#include <cstdio>
#include <vector>

#include <sinew/sinew.hpp>

namespace {

using sinew::Buf;
using sinew::Op;

sinew::Schedule star(int rank, int size) {
  const auto all = sinew::Chunks{Buf::output, 0, 1};
  sinew::Schedule s;
  s.name = "star";
  s.rank = rank;
  s.size = size;
  s.chunks = {1, 1, 0, 0};  // input and output are one chunk each
  s.rounds = static_cast<std::uint32_t>(size) + 1;
  s.steps.push_back({.op = Op::copy, .round = 0, .src = {Buf::input, 0, 1}, .dst = all});
  for (int other = 1; other < size; ++other) {
    const auto round = static_cast<std::uint32_t>(other);
    if (rank == 0)
      s.steps.push_back({.op = Op::recv_reduce, .round = round, .peer = other, .dst = all});
    if (rank == other) s.steps.push_back({.op = Op::send, .round = round, .peer = 0, .src = all});
  }
  for (int other = 1; other < size; ++other) {
    if (rank == 0)
      s.steps.push_back({.op = Op::send, .round = s.rounds - 1, .peer = other, .src = all});
    if (rank == other)
      s.steps.push_back({.op = Op::recv, .round = s.rounds - 1, .peer = 0, .dst = all});
  }
  return s;
}

}  // namespace

int main() try {
  sinew::Communicator comm = sinew::connect();
  sinew::World world{sinew::Collective::allreduce, 0, {}};
  for (int rank = 0; rank < comm.size(); ++rank) world.ranks.push_back(star(rank, comm.size()));

  comm.install(world);  // verified here; a wrong schedule throws, and says what goes wrong
  std::vector<float> data(1000, 1.0F);
  comm.allreduce(std::span<float>(data), sinew::ReduceOp::sum, {.algorithm = "star"});
  if (comm.rank() == 0) std::printf("%s", sinew::draw_text(world).c_str());

  // What the verifier says about a star that forgets its last rank:
  world.ranks.back().steps.pop_back();
  const auto verdict = sinew::verify(world);
  if (comm.rank() == 0 && comm.size() > 1)
    std::printf("without its last step: %s\n",
                verdict.ok() ? "accepted?" : verdict.fault->why.c_str());
  const bool right = data[0] == static_cast<float>(comm.size());
  return right && (comm.size() == 1 || !verdict.ok()) ? 0 : 1;
} catch (const sinew::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
