// How fast the kernels are on this machine: fold, pair and copy from one cache line to far past the
// caches, beside the loop a person would write by hand; selection, beside the bare accumulate; the
// checksum, beside xxh3; indices as gaps, beside one at a time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "kernel/checksum.hpp"
#include "kernel/copy.hpp"
#include "kernel/gaps.hpp"
#include "kernel/large_buffer.hpp"
#include "kernel/reduce.hpp"
#include "kernel/top_k.hpp"

#include <xxhash.h>
#if defined(__x86_64__)
#include <immintrin.h>
#include <xxh_x86dispatch.h>  // the widest vectors this machine has
#endif

namespace {

constexpr std::align_val_t kPage{4096};

struct FreePages {
  void operator()(std::byte* memory) const { ::operator delete[](memory, kPage); }
};

/// Buffers that start at different cache sets, as those of different ranks do.
class Buffers {
 public:
  Buffers(std::size_t count, std::size_t bytes) {
    const std::size_t stride = (bytes + 4095) / 4096 * 4096 + 256;
    memory_.reset(new (kPage) std::byte[count * stride]);
    std::memset(memory_.get(), 0, count * stride);
    for (std::size_t i = 0; i < count; ++i) buffers_.push_back(memory_.get() + i * stride);
  }
  std::byte* operator[](std::size_t i) const { return buffers_[i]; }
  std::span<std::byte* const> all() const { return buffers_; }

 private:
  std::unique_ptr<std::byte[], FreePages> memory_;
  std::vector<std::byte*> buffers_;
};

void fold(benchmark::State& state, sinew::DType dtype, bool streaming) {
  const auto inputs = static_cast<std::size_t>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  const sinew::Reducer reducer = sinew::find_reducer(dtype, sinew::ReduceOp::sum);
  const Buffers buffers(inputs + 1, bytes);
  const std::vector<const std::byte*> from(buffers.all().begin() + 1, buffers.all().end());
  for (auto _ : state) {
    reducer.fold(buffers.all().first(1), from, bytes / reducer.element_bytes, streaming ? 1 : 0);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(inputs * bytes));
}

// Every buffer becomes the sum of all, as with alloc_shared(): all destinations are inputs.
void everywhere(benchmark::State& state, bool streaming) {
  const auto inputs = static_cast<std::size_t>(state.range(0));
  constexpr std::size_t kBytes = 110278272;
  const sinew::Reducer reducer = sinew::find_reducer(sinew::DType::f32, sinew::ReduceOp::sum);
  const Buffers buffers(inputs, kBytes);
  const std::vector<const std::byte*> from(buffers.all().begin(), buffers.all().end());
  for (auto _ : state) {
    reducer.fold(buffers.all(), from, kBytes / reducer.element_bytes, streaming ? inputs : 0);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(inputs * kBytes));
}

void pair(benchmark::State& state, sinew::DType dtype) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const sinew::Reducer reducer = sinew::find_reducer(dtype, sinew::ReduceOp::sum);
  const Buffers buffers(2, bytes);
  for (auto _ : state) {
    reducer.pair(buffers[0], buffers[1], bytes / reducer.element_bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * bytes));
}

void copy(benchmark::State& state, bool streaming) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Buffers buffers(2, bytes);
  for (auto _ : state) {
    sinew::copy_bytes(buffers[0], buffers[1], bytes, streaming);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

#if defined(__x86_64__)
/// Two inputs, four AVX vectors a round: what fold() has to reach.
__attribute__((target("avx2"))) void add_by_hand(float* dst, const float* a, const float* b,
                                                 std::size_t elements) {
  std::size_t i = 0;
  for (; i + 32 <= elements; i += 32) {
    for (std::size_t k = 0; k < 32; k += 8) {
      _mm256_storeu_ps(dst + i + k,
                       _mm256_add_ps(_mm256_loadu_ps(a + i + k), _mm256_loadu_ps(b + i + k)));
    }
  }
  for (; i < elements; ++i) dst[i] = a[i] + b[i];
}

void by_hand(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Buffers buffers(3, bytes);
  for (auto _ : state) {
    add_by_hand(reinterpret_cast<float*>(buffers[0]), reinterpret_cast<float*>(buffers[1]),
                reinterpret_cast<float*>(buffers[2]), bytes / sizeof(float));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * bytes));
}
BENCHMARK(by_hand)->Arg(64)->Arg(4 << 10)->Arg(64 << 10)->Arg(1 << 20)->Arg(64 << 20);
#endif

// Selection from a gradient of 27,569,568 elements with heavy tails and layers of different scale.
// Each iteration is one round of all contenders, so that what the machine does to one it does to
// all; the counters are the ratios of medians that matter.
class Selection {
 public:
  explicit Selection(double density)
      : items_(static_cast<std::size_t>(kElements * density)), top_(kElements, items_) {
    std::uint64_t state = 88172645463325252U;
    for (std::size_t i = 0; i < kElements; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const double u = (static_cast<double>(state >> 11) + 0.5) * 0x1p-53 - 0.5;
      const double layer = 1 + std::sin(static_cast<double>(i / 1000000)) * 0.9;
      gradient_.data()[i] =
          static_cast<float>(layer * (u < 0 ? std::log(1 + 2 * u) : -std::log(1 - 2 * u)));
    }
    least_ = sinew::kth_magnitude(gradient_.all(), items_).magnitude;
  }

  // All in place, as steps are; nothing was kept before, so that each finds the same.
  void round() {
    const auto reducer = sinew::find_reducer(sinew::DType::f32, sinew::ReduceOp::sum);
    time(accumulate_, [&] {
      reducer.pair(reinterpret_cast<std::byte*>(kept_.data()),
                   reinterpret_cast<const std::byte*>(gradient_.data()), kElements);
    });
    time(fused_, [&] {
      sinew::accumulate_select(gradient_.all(), {kept_.all(), gone_}, kept_.all(), least_,
                               {indices_.data(), values_.data(), items_}, false);
    });
    time(top_k_, [&] { top_.accumulate(gradient_.all(), {kept_.all(), gone_}, kept_.all()); });
    time(kth_, [&] { top_.choose(gradient_.all()); });
  }

  void report(benchmark::State& state) {
    const double bare = median(accumulate_);
    state.counters["accumulate_ms"] = bare;
    state.counters["fused_ms"] = median(fused_);
    state.counters["top_k_ms"] = median(top_k_);
    state.counters["kth_ms"] = median(kth_);
    state.counters["fused/accumulate"] = median(fused_) / bare;
    state.counters["top_k/accumulate"] = median(top_k_) / bare;
    state.counters["kth/accumulate"] = median(kth_) / bare;
  }

 private:
  static constexpr std::size_t kElements = 27569568;

  template <class Work>
  void time(std::vector<double>& into, Work work) {
    std::memset(kept_.data(), 0, kElements * sizeof(float));
    const auto begin = std::chrono::steady_clock::now();
    work();
    const auto elapsed = std::chrono::steady_clock::now() - begin;
    into.push_back(std::chrono::duration<double, std::milli>(elapsed).count());
  }
  static double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  std::size_t items_;
  sinew::TopK top_;
  sinew::LargeBuffer<float> gradient_{kElements}, kept_{kElements};
  std::vector<std::uint64_t> gone_ = std::vector<std::uint64_t>(kElements / 64 + 1);
  sinew::LargeBuffer<std::uint32_t> indices_{items_ + sinew::kSelectSlack};
  sinew::LargeBuffer<float> values_{items_ + sinew::kSelectSlack};
  sinew::Magnitude least_ = 0;
  std::vector<double> accumulate_, fused_, top_k_, kth_;
};

void selection(benchmark::State& state) {
  Selection selection(static_cast<double>(state.range(0)) / 1000);
  selection.round();
  for (auto _ : state) selection.round();
  selection.report(state);
}
BENCHMARK(selection)->ArgName("per_mille")->Arg(20)->Arg(10)->Arg(1)->Iterations(9);

template <class Sum>
void checksum(benchmark::State& state, Sum sum) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Buffers buffers(1, bytes);
  for (auto _ : state) benchmark::DoNotOptimize(sum(std::span<const std::byte>(buffers[0], bytes)));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

// As many indices as a rank of two writes in a step of 27,569,568 elements at 2 %, as random.
template <class Put>
void gaps(benchmark::State& state, Put put) {
  constexpr std::uint32_t kElements = 27569568, kPerMille = 20;
  std::vector<std::uint32_t> indices;
  std::uint64_t random = 88172645463325252U;
  for (std::uint32_t i = 0; i < kElements; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    if ((random >> 33) % 1000 < kPerMille) indices.push_back(i);
  }
  std::vector<std::byte> room(indices.size() * sinew::kMostGapBytes);
  for (auto _ : state) benchmark::DoNotOptimize(put(indices, room.data()));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(indices.size()));
}

const std::vector<std::int64_t> kInputs{2, 4, 8};
const std::vector<std::int64_t> kFrames{64, 4 << 10, 256 << 10};
const std::vector<std::int64_t> kSizes{64, 4 << 10, 64 << 10, 1 << 20, 64 << 20};

BENCHMARK_CAPTURE(fold, f32, sinew::DType::f32, false)->ArgsProduct({kInputs, kSizes});
BENCHMARK_CAPTURE(fold, bf16, sinew::DType::bf16, false)->ArgsProduct({kInputs, kSizes});
BENCHMARK_CAPTURE(fold, f32_streaming, sinew::DType::f32, true)->ArgsProduct({kInputs, kSizes});
BENCHMARK_CAPTURE(everywhere, plain, false)->ArgsProduct({kInputs})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(everywhere, streaming, true)
    ->ArgsProduct({kInputs})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pair, f32, sinew::DType::f32)->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(pair, bf16, sinew::DType::bf16)->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(checksum, ours, [](auto data) { return sinew::checksum(data); })
    -> ArgsProduct({kFrames});
BENCHMARK_CAPTURE(checksum, scalar, [](auto data) { return sinew::checksum_scalar(data); })
    -> ArgsProduct({kFrames});
BENCHMARK_CAPTURE(checksum, xxh3, [](auto data) { return XXH3_64bits(data.data(), data.size()); })
    -> ArgsProduct({kFrames});
BENCHMARK_CAPTURE(gaps, vectors,
                  [](auto indices, auto* to) { return sinew::put_gaps(indices, 0, to); });
BENCHMARK_CAPTURE(gaps, one_by_one,
                  [](auto indices, auto* to) { return sinew::put_gaps_scalar(indices, 0, to); });
BENCHMARK_CAPTURE(copy, plain, false)->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(copy, streaming, true)->ArgsProduct({kSizes});

}  // namespace

BENCHMARK_MAIN();
