// Writes the traces of a long training run, to time reports with: events FOLDER [RANKS [EVENTS]].
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <sinew/trace.hpp>
#include "trace/recorder.hpp"

namespace {

using namespace sinew;

/// Compute, four messages, an allreduce, a mark: eight events an iteration.
void write_rank(const std::string& folder, int rank, int ranks, std::uint64_t events) {
  trace::Recorder recorder({.path = fmt::format("{}/{}.trace", folder, rank)});
  auto& writer = recorder.writer();
  const auto info = [&](const std::string& text) { writer.note(trace::NoteKind::info, 0, text); };
  info(fmt::format("rank={}", rank));
  info(fmt::format("size={}", ranks));
  info(fmt::format("host=node{}", rank / 4));
  info("command=events");
  const char* const names[] = {"",          "compute",     "data",          "MPI_Isend",
                               "MPI_Irecv", "MPI_Waitall", "MPI_Allreduce", "iteration"};
  for (std::uint16_t i = 1; i < 8; ++i) writer.note(trace::NoteKind::routine, i, names[i]);
  writer.note(trace::NoteKind::communicator, 1, fmt::format("world\nsize={}", ranks));
  std::uint64_t now = trace::monotonic_ns();
  for (std::uint32_t step = 0; step < events / 8; ++step) {
    const auto begin = now;
    const auto add = [&](std::uint16_t routine, std::uint64_t us, std::uint64_t bytes, int peer) {
      Event event;
      event.kind = EventKind::call;
      event.operation = routine;
      event.communicator = routine == 6 ? 1 : 0;
      event.sequence = routine == 6 ? step + 1 : step;
      event.bytes = bytes;
      event.peer = peer;
      event.begin_ns = routine == 7 ? begin : now;
      if (routine != 7) now += us * 1000;
      event.end_ns = now;
      recorder.on_event(event);
    };
    add(2, 20, 0, -1);
    add(1, 300 + static_cast<std::uint64_t>(rank), 0, -1);
    add(3, 5, 4096 + 8 * (step % 100), (rank + 1) % ranks);
    add(4, 5, 4096 + 8 * (step % 100), (rank + ranks - 1) % ranks);
    add(5, 40, 0, -1);
    add(3, 5, 65536, (rank + 1) % ranks);
    add(6, 100 - static_cast<std::uint64_t>(rank), 1U << 20U, -1);
    add(7, 0, 0, -1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: events FOLDER [RANKS [EVENTS]]\n");
    return 2;
  }
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 8;
  const std::uint64_t events = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1'000'000;
  std::filesystem::create_directories(argv[1]);
  for (int rank = 0; rank < ranks; ++rank)
    write_rank(argv[1], rank, ranks, events / static_cast<std::uint64_t>(ranks));
  return 0;
}
