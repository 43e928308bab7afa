// Writes the traces of the run that the first two documents of this project describe: 8 ranks train
// with 128 dense iterations of 110.278272 MB, then 12 sparse ones (Ok-Topk, 2 %). The sizes of the
// messages are those of the documents; their times are not known, so that these are assumptions and
// marked as such.
//
//   seed_trace FOLDER
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <sinew/trace.hpp>
#include "trace/thread_log.hpp"

namespace {

using namespace sinew;
using trace::NoteKind;

constexpr int kRanks = 8;
constexpr std::uint32_t kDense = 128, kSparse = 12;
constexpr std::uint64_t kGradientBytes = 27'569'568ULL * 4;
constexpr std::uint64_t kUnit = 10'000;  // the documents give sizes to 0.01 MB

struct Count {
  std::uint64_t size, messages;  // size in units of 0.01 MB
};

// The ten most frequent sizes of the gathered gradients, the least and the most; what fills the
// rest is chosen so that 88 messages have 130.24 MB, 1.48 MB on average.
std::vector<std::uint64_t> gathered_sizes() {
  constexpr std::array kKnown = std::to_array<Count>({{28, 25},
                                                      {82, 4},
                                                      {94, 4},
                                                      {114, 3},
                                                      {15, 2},
                                                      {50, 2},
                                                      {58, 2},
                                                      {66, 2},
                                                      {74, 2},
                                                      {81, 2},
                                                      {35, 1},
                                                      {596, 1}});
  std::vector<std::uint64_t> sizes;
  for (const auto& [size, messages] : kKnown) sizes.insert(sizes.end(), messages, size);
  for (std::uint64_t i = 0; i < 38; ++i) sizes.push_back(132 + 7 * i + (i == 37 ? 22 : 0));
  return sizes;
}

// 672 messages with 305.46 MB, the ten most frequent sizes as the document lists them. Its 160
// sizes do not go with the rest: 137 are the most that make this total.
constexpr std::array kMessages = std::to_array<Count>(
    {{6, 1},   {7, 8},   {8, 8},   {9, 8},   {10, 8},  {11, 8},  {12, 8},  {13, 8},  {14, 9},
     {15, 8},  {16, 8},  {17, 8},  {18, 15}, {19, 9},  {20, 16}, {21, 8},  {22, 8},  {23, 18},
     {24, 8},  {25, 18}, {26, 8},  {27, 8},  {28, 25}, {29, 15}, {30, 8},  {31, 8},  {32, 8},
     {33, 8},  {34, 8},  {35, 8},  {36, 8},  {37, 8},  {38, 8},  {39, 9},  {40, 8},  {41, 8},
     {42, 16}, {43, 8},  {44, 8},  {45, 8},  {46, 8},  {47, 8},  {48, 8},  {49, 8},  {50, 8},
     {51, 8},  {52, 8},  {53, 8},  {54, 8},  {55, 8},  {56, 8},  {57, 8},  {58, 8},  {59, 8},
     {60, 8},  {61, 8},  {62, 8},  {63, 8},  {64, 8},  {65, 8},  {66, 8},  {67, 8},  {68, 8},
     {69, 8},  {70, 8},  {71, 8},  {72, 7},  {73, 5},  {74, 1},  {75, 1},  {76, 1},  {77, 1},
     {78, 1},  {79, 1},  {80, 1},  {81, 1},  {82, 1},  {83, 1},  {84, 1},  {85, 1},  {86, 1},
     {87, 1},  {88, 1},  {89, 1},  {90, 1},  {91, 1},  {92, 1},  {93, 1},  {94, 1},  {95, 1},
     {96, 1},  {97, 1},  {98, 1},  {99, 1},  {100, 1}, {101, 1}, {102, 1}, {103, 1}, {104, 1},
     {105, 1}, {106, 1}, {107, 1}, {108, 1}, {109, 1}, {110, 1}, {111, 1}, {112, 1}, {113, 1},
     {114, 1}, {115, 1}, {116, 1}, {117, 1}, {118, 1}, {119, 1}, {120, 1}, {121, 1}, {122, 1},
     {123, 1}, {124, 1}, {125, 1}, {126, 1}, {127, 1}, {128, 1}, {129, 1}, {130, 1}, {131, 1},
     {132, 1}, {133, 1}, {134, 1}, {135, 1}, {136, 1}, {137, 1}, {138, 1}, {139, 1}, {140, 1},
     {141, 1}, {228, 1}});

std::vector<std::uint64_t> message_sizes() {
  std::vector<std::uint64_t> sizes;
  for (const auto& [size, messages] : kMessages) sizes.insert(sizes.end(), messages, size);
  return sizes;
}

/// In an order that mixes large and small, the same each time.
std::vector<std::uint64_t> mixed(std::vector<std::uint64_t> sizes) {
  std::uint64_t state = 1;
  for (std::size_t i = sizes.size(); i > 1; --i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::swap(sizes[i - 1], sizes[(state >> 33U) % i]);
  }
  for (auto& size : sizes) size *= kUnit;
  return sizes;
}

std::uint64_t now_ns = 0;  // the clock of the rank that is being written
std::uint64_t scripted_clock() { return now_ns; }

enum Routine : std::uint16_t {
  kIteration = 1,
  kCompute,
  kData,
  kCompress,
  kAllreduce,
  kAllgather,
  kAllgatherv,
  kAlltoall,
  kIsend,
  kIrecv,
  kWaitall
};
enum Label : std::uint8_t { kNone, kDenseLabel, kRegion, kFinal, kRecompute, kIndex, kValue };

class Rank {
 public:
  Rank(const std::string& folder, int rank)
      : rank_(rank),
        writer_({.path = fmt::format("{}/rank{}.trace", folder, rank),
                 .ticks = &scripted_clock,
                 .monotonic = &scripted_clock}),
        log_(writer_) {
    const auto info = [&](const std::string& text) { writer_.note(NoteKind::info, 0, text); };
    info("producer=seed_trace");
    info(fmt::format("rank={}", rank));
    info(fmt::format("size={}", kRanks));
    info(fmt::format("host=node{}", rank / 4));
    info("command=training of lstman4 on AN4, batch 2 a worker, 10 epochs");
    info("model=lstman4");
    info("scheme=oktopk");
    info("density=0.02");
    info(fmt::format("dense_bytes={}", kGradientBytes));
    info("times=assumed");
    writer_.note(NoteKind::communicator, 1,
                 fmt::format("MPI_COMM_WORLD\nsize={}\nmembers=0-{}", kRanks, kRanks - 1));
    const std::pair<Routine, const char*> routines[] = {{kIteration, "iteration"},
                                                        {kCompute, "compute"},
                                                        {kData, "data"},
                                                        {kCompress, "compress"},
                                                        {kAllreduce, "MPI_Allreduce"},
                                                        {kAllgather, "MPI_Allgather"},
                                                        {kAllgatherv, "MPI_Allgatherv"},
                                                        {kAlltoall, "MPI_Alltoall"},
                                                        {kIsend, "MPI_Isend"},
                                                        {kIrecv, "MPI_Irecv"},
                                                        {kWaitall, "MPI_Waitall"}};
    for (const auto& [number, name] : routines) writer_.note(NoteKind::routine, number, name);
    const std::pair<Label, const char*> labels[] = {
        {kDenseLabel, "dense"},    {kRegion, "region"}, {kFinal, "final"},
        {kRecompute, "recompute"}, {kIndex, "index"},   {kValue, "value"}};
    for (const auto& [number, name] : labels) writer_.note(NoteKind::label, number, name);
  }

  /// One call that takes `ms` from now on.
  void call(Routine routine, double ms, trace::Key key = {}, std::uint32_t sequence = 0) {
    add(routine, now_ns, ms, key, sequence);
    now_ns += static_cast<std::uint64_t>(ms * 1e6);
  }
  void add(Routine routine, std::uint64_t begin, double ms, trace::Key key,
           std::uint32_t sequence) {
    key.kind = static_cast<std::uint8_t>(EventKind::call);
    key.operation = routine;
    log_.add(*log_.find(key).slot, begin, static_cast<std::uint64_t>(ms * 1e6), 0, sequence);
  }
  /// A collective of the world that ends at `until`, whenever this rank came.
  void meet(Routine routine, std::uint64_t until, trace::Key key) {
    key.communicator = 1;
    add(routine, now_ns, static_cast<double>(until - now_ns) * 1e-6, key, ++collectives_);
    now_ns = until;
  }
  void close() { writer_.close(); }
  [[nodiscard]] int number() const { return rank_; }

 private:
  int rank_;
  trace::Writer writer_;
  trace::ThreadLog log_;
  std::uint32_t collectives_ = 0;
};

trace::Key key(std::uint64_t bytes, std::uint64_t sent, std::uint64_t received, Label label = kNone,
               int peer = -1) {
  trace::Key result;
  result.bytes = bytes;
  result.sent = sent;
  result.received = received;
  result.label = label;
  result.peer = peer;
  result.tag = label;
  return result;
}

constexpr double kSparseMs = 100;  // as the document estimates
constexpr double kDenseMs =
    (388'420.0 - kSparse * kSparseMs) / kDense;  // so that all take 388.42 s
constexpr double kAllreduceMs = 162.5;           // the one time that somebody printed

/// Ranks compute a little longer the higher their number.
double skewed(double ms, int rank) { return ms * (1 + 0.001 * rank); }

void dense_iteration(Rank& rank, std::uint32_t number) {
  const auto begin = now_ns;
  const auto end = begin + static_cast<std::uint64_t>(kDenseMs * 1e6);
  rank.call(kData, 20);
  rank.call(kCompute, skewed(kDenseMs - kAllreduceMs - 40, rank.number()));
  rank.meet(kAllreduce, end, key(kGradientBytes, kGradientBytes, kGradientBytes, kDenseLabel));
  rank.add(kIteration, begin, kDenseMs, {}, number);
}

struct Sizes {
  std::vector<std::uint64_t> messages = mixed(message_sizes());   // [iteration][from][peer]
  std::vector<std::uint64_t> gathered = mixed(gathered_sizes());  // [iteration - 1][rank]
  [[nodiscard]] std::uint64_t message(std::uint32_t step, int from, int to) const {
    const int place = (to - from + kRanks) % kRanks - 1;
    return messages[(step * kRanks + static_cast<std::uint32_t>(from)) * (kRanks - 1) +
                    static_cast<std::uint32_t>(place)];
  }
  [[nodiscard]] std::uint64_t gathering(std::uint32_t step, int rank) const {
    // The first sparse step gathers all there is; nobody logged how much, so the mean is assumed.
    if (step == 0) return 148 * kUnit;
    return gathered[(step - 1) * kRanks + static_cast<std::uint32_t>(rank)];
  }
};

void sparse_iteration(Rank& rank, std::uint32_t step, const Sizes& sizes) {
  const auto begin = now_ns;
  const int me = rank.number();
  const auto at = [&](double ms) { return begin + static_cast<std::uint64_t>(ms * 1e6); };
  rank.call(kData, 5);
  rank.call(kCompute, skewed(50, me));
  rank.call(kCompress, 15);
  if (step == 0) rank.meet(kAllreduce, at(73), key(28, 28, 28, kRegion));
  rank.meet(kAlltoall, at(74), key(4, 28, 28));
  for (int offset = 1; offset < kRanks; ++offset) {
    const int to = (me + offset) % kRanks, from = (me - offset + kRanks) % kRanks;
    const auto out = sizes.message(step, me, to), in = sizes.message(step, from, me);
    for (const auto label : {kIndex, kValue}) {
      rank.call(kIsend, 0.02, key(out, out, 0, label, to));
      rank.call(kIrecv, 0.02, key(in, 0, in, label, from));
    }
  }
  rank.call(kWaitall, static_cast<double>(at(84) - now_ns) * 1e-6);
  rank.meet(kAllgather, at(85), key(4, 4, 28));
  const auto own = sizes.gathering(step, me);
  std::uint64_t all = 0;
  for (int other = 0; other < kRanks; ++other) all += sizes.gathering(step, other);
  rank.meet(kAllgatherv, at(96), key(own, own, all - own, step == 0 ? kRecompute : kFinal));
  rank.call(kCompress, 4);
  rank.add(kIteration, begin, kSparseMs, {}, kDense + step);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: seed_trace FOLDER\n");
    return 2;
  }
  try {
    std::filesystem::create_directories(argv[1]);
    const Sizes sizes;
    for (int number = 0; number < kRanks; ++number) {
      now_ns = 1'000'000'000;
      Rank rank(argv[1], number);
      for (std::uint32_t i = 0; i < kDense; ++i) dense_iteration(rank, i);
      for (std::uint32_t i = 0; i < kSparse; ++i) sparse_iteration(rank, i, sizes);
      rank.close();
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "seed_trace: {}\n", error.what());
    return 1;
  }
  return 0;
}
