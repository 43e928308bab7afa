// What one measurement is about: a collective, its size and how its buffers lie.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::bench {

enum class Collective : std::uint8_t {
  allreduce,
  reduce,
  broadcast,
  allgather,
  allgatherv,
  reduce_scatter,
  alltoall,
  alltoallv,
  scatter,
  gather,
  barrier,
};

inline constexpr std::array kCollectives{
    Collective::allreduce, Collective::reduce,     Collective::broadcast,
    Collective::allgather, Collective::allgatherv, Collective::reduce_scatter,
    Collective::alltoall,  Collective::alltoallv,  Collective::scatter,
    Collective::gather,    Collective::barrier};

std::string_view name(Collective collective) noexcept;

/// Elements are f32 and the reduction is sum unless a contender brings its own data
/// (Contender::fill and Contender::count_wrong); then element_bytes and options say which.
struct Case {
  Collective collective = Collective::allreduce;
  /// The large buffer on each rank: the vector of allreduce, reduce and broadcast, the output of
  /// allgather and gather, the input of reduce_scatter, alltoall and scatter.
  std::uint64_t bytes = 0;
  std::uint32_t element_bytes = 4;
  int root = 0;
  bool in_place = false;  // allreduce only; broadcast always is
  bool rewrite = false;   // ranks rewrite their input before each sample, outside the timed part
  /// Elements, for the v-variants, which take them instead of bytes. allgatherv: what each rank
  /// gives. alltoallv: what rank i sends to rank j, at [i * ranks + j].
  std::vector<std::uint64_t> counts{};
  /// Passed through to the contender: its algorithm, type, whatever it reads there.
  std::string options{};

  friend bool operator==(const Case&, const Case&) = default;
};

/// How much one rank gives and takes, in elements.
struct Extent {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
};

/// Elements in one rank's part where all parts are equal (bytes rounded down to whole parts).
std::uint64_t elements_per_rank(const Case& what, int ranks) noexcept;
/// broadcast has only an output: the buffer that is sent from the root and filled elsewhere.
Extent extent(const Case& what, int rank, int ranks) noexcept;
/// What `from` hands to `to` in an alltoall or alltoallv.
std::uint64_t pair_elements(const Case& what, int from, int to, int ranks) noexcept;
/// Throws std::invalid_argument with the reason when the case makes no sense for this many ranks.
void check(const Case& what, int ranks);
/// "allreduce of 4096 B"
std::string describe(const Case& what);

}  // namespace sinew::bench
