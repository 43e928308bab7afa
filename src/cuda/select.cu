#include "cuda/select.hpp"

#include <algorithm>
#include <string>

#include <sinew/error.hpp>

namespace sinew::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRows = 4;                     // of four elements a thread
constexpr int kBlocksEach = 4;               // a multiprocessor: as many as have enough registers
constexpr int kTile = kThreads * kRows * 4;  // elements a block selects from
constexpr int kWarps = kThreads / 32;
constexpr unsigned kAll = 0xFFFFFFFFU;

/// Items of a tile lie together until it is known how many come before them. Of a tile with more
/// than this the sum is read again.
constexpr int kRoom = kTile / 8;
constexpr int kTilesPlaced = 32;  // by one block, a warp each

__device__ bool is_chosen(float value, Magnitude floor) {
  return (__float_as_uint(value) & 0x7FFFFFFFU) >= floor;
}

struct Row {
  float at[4];
};

__device__ Row load_row(const float* from, std::size_t first, std::size_t elements, bool aligned) {
  if (aligned && first + 4 <= elements) {
    const float4 whole = __ldcs(reinterpret_cast<const float4*>(from + first));
    return {{whole.x, whole.y, whole.z, whole.w}};
  }
  Row row{};
  for (int i = 0; i < 4; ++i)
    if (first + i < elements) row.at[i] = from[first + i];
  return row;
}

__device__ void store_row(float* to, std::size_t first, std::size_t elements, bool aligned,
                          const Row& row) {
  if (aligned && first + 4 <= elements) {
    __stcs(reinterpret_cast<float4*>(to + first),
           make_float4(row.at[0], row.at[1], row.at[2], row.at[3]));
    return;
  }
  for (int i = 0; i < 4; ++i)
    if (first + i < elements) to[first + i] = row.at[i];
}

/// Numbers of items a thread has in its rows, 16 bits each.
__device__ std::uint64_t scan_in_warp(std::uint64_t counts) {
  const int lane = threadIdx.x & 31;
  for (int reach = 1; reach < 32; reach *= 2) {
    const std::uint64_t from = __shfl_up_sync(kAll, counts, reach);
    if (lane >= reach) counts += from;
  }
  return counts;
}

__device__ std::uint32_t sum_in_warp(std::uint32_t value) {
  for (int reach = 16; reach > 0; reach /= 2) value += __shfl_xor_sync(kAll, value, reach);
  return value;
}

/// Where an element lies: those of a thread, row by row.
__device__ std::size_t first_of(int tile, int row) {
  return static_cast<std::size_t>(tile) * kTile + 4 * (row * kThreads + threadIdx.x);
}

/// The first pass. Blocks do not wait for each other, so that it runs as fast as memory does.
__global__ void __launch_bounds__(kThreads, kBlocksEach)
    accumulate_select_tiles(const float* gradient, const float* kept, float* sum,
                            std::size_t elements, bool aligned, Magnitude floor,
                            std::uint32_t* counts, std::uint32_t* indices, float* values) {
  __shared__ std::uint64_t warps[kWarps];
  const int tile = blockIdx.x, warp = static_cast<int>(threadIdx.x) / 32;
  Row rows[kRows], more[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    rows[r] = load_row(gradient, first_of(tile, r), elements, aligned);
    more[r] = load_row(kept, first_of(tile, r), elements, aligned);
  }
  std::uint64_t mine = 0;  // items in each row, 16 bits each
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::size_t first = first_of(tile, r);
    int chosen = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      rows[r].at[i] = __fadd_rn(rows[r].at[i], more[r].at[i]);
      chosen += first + i < elements && is_chosen(rows[r].at[i], floor) ? 1 : 0;
    }
    mine |= static_cast<std::uint64_t>(chosen) << (16 * r);
    store_row(sum, first, elements, aligned, rows[r]);
  }
  const std::uint64_t up_to = scan_in_warp(mine);
  if (threadIdx.x % 32 == 31) warps[warp] = up_to;
  __syncthreads();
  std::uint64_t before = up_to - mine, total = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += warps[w];
    total += warps[w];
  }
  std::uint32_t in_rows = 0;  // items in the rows so far
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    std::uint32_t to = in_rows + (static_cast<std::uint32_t>(before >> (16 * r)) & 0xFFFFU);
    in_rows += static_cast<std::uint32_t>(total >> (16 * r)) & 0xFFFFU;
    if ((mine >> (16 * r) & 0xFFFFU) == 0) continue;
    const std::size_t first = first_of(tile, r);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first + i >= elements || !is_chosen(rows[r].at[i], floor)) continue;
      if (to < kRoom) {
        indices[tile * kRoom + to] = static_cast<std::uint32_t>(first) + i;
        values[tile * kRoom + to] = rows[r].at[i];
      }
      ++to;
    }
  }
  if (threadIdx.x == 0) counts[tile] = in_rows;
}

/// Items of a crowded tile, found in the sum. Called by a warp.
__device__ void place_from_sum(const float* sum, std::size_t elements, Magnitude floor, int tile,
                               std::uint32_t to, const DeviceItems& items) {
  const unsigned lane = threadIdx.x % 32;
  const std::size_t begin = static_cast<std::size_t>(tile) * kTile;
  for (std::size_t at = begin + lane; at < begin + kTile + lane; at += 32) {
    const bool chosen = at < elements && is_chosen(sum[at], floor);
    const unsigned which = __ballot_sync(kAll, chosen);
    const std::uint32_t mine = to + __popc(which & ((1U << lane) - 1));
    if (chosen && mine < items.capacity) {
      items.indices[mine] = static_cast<std::uint32_t>(at);
      items.values[mine] = sum[at];
    }
    to += __popc(which);
  }
}

/// The second pass: each block adds up what lies before its tiles, each warp moves one tile's items
/// to where they belong.
__global__ void __launch_bounds__(kTilesPlaced * 32)
    place_items(const float* sum, std::size_t elements, Magnitude floor,
                const std::uint32_t* counts, const std::uint32_t* indices, const float* values,
                int tiles, DeviceItems items) {
  __shared__ std::uint32_t before_block, sums[kTilesPlaced];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first = static_cast<int>(blockIdx.x) * kTilesPlaced;
  std::uint32_t before = 0;
  for (int i = static_cast<int>(threadIdx.x); i < first; i += kTilesPlaced * 32)
    before += counts[i];
  before = sum_in_warp(before);
  if (lane == 0) sums[warp] = before;
  __syncthreads();
  if (warp == 0) {
    before = sum_in_warp(sums[lane]);
    if (lane == 0) before_block = before;
  }
  __syncthreads();
  const int tile = first + warp;
  // What the tiles of the block have that come before this warp's.
  const std::uint32_t own = first + lane < tiles ? counts[first + lane] : 0;
  const std::uint32_t to = before_block + sum_in_warp(lane < warp ? own : 0);
  if (tile >= tiles) return;
  const std::uint32_t count = __shfl_sync(kAll, own, warp);
  if (tile == tiles - 1 && lane == 0) *items.count = to + count;
  if (count > kRoom) return place_from_sum(sum, elements, floor, tile, to, items);
  for (std::uint32_t i = lane; i < count; i += 32) {
    if (to + i >= items.capacity) break;
    items.indices[to + i] = indices[tile * kRoom + i];
    items.values[to + i] = values[tile * kRoom + i];
  }
}

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw Error(Errc::system, std::string(what) + ": " + cudaGetErrorString(status));
}

std::size_t tiles_of(std::size_t elements) { return (elements + kTile - 1) / kTile; }

}  // namespace

Selector::Selector(std::size_t elements) : elements_(elements) {
  if (elements > 0x7FFF'FFFFU)
    throw Error(Errc::invalid_argument,
                std::to_string(elements) + " elements: a GPU selects from 2^31 - 1 at most");
  const auto tiles = std::max<std::size_t>(1, tiles_of(elements));
  void* memory = nullptr;
  check(cudaMalloc(&memory, tiles * (1 + 2 * kRoom) * sizeof(std::uint32_t)),
        "no device memory to select with");
  counts_ = static_cast<std::uint32_t*>(memory);
  indices_ = counts_ + tiles;
  values_ = reinterpret_cast<float*>(indices_ + tiles * kRoom);
}

Selector::~Selector() { cudaFree(counts_); }

void Selector::accumulate_select(const float* gradient, const float* kept, float* sum,
                                 std::size_t elements, Magnitude floor, const DeviceItems& items,
                                 cudaStream_t stream) {
  if (elements > elements_)
    throw Error(Errc::invalid_argument,
                std::to_string(elements) + " elements, but made for " + std::to_string(elements_));
  if (elements == 0) {
    check(cudaMemsetAsync(items.count, 0, sizeof *items.count, stream), "selecting on the GPU");
    return;
  }
  const auto tiles = static_cast<int>(tiles_of(elements));
  const auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
  accumulate_select_tiles<<<tiles, kThreads, 0, stream>>>(
      gradient, kept, sum, elements, aligned(gradient) && aligned(kept) && aligned(sum), floor,
      counts_, indices_, values_);
  place_items<<<(tiles + kTilesPlaced - 1) / kTilesPlaced, kTilesPlaced * 32, 0, stream>>>(
      sum, elements, floor, counts_, indices_, values_, tiles, items);
  check(cudaGetLastError(), "selecting on the GPU");
}

}  // namespace sinew::cuda
