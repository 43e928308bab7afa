// How fast the kernels are on this machine: fold, pair and copy from one cache line to far past the
// caches, beside the loop a person would write by hand.
#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "kernel/copy.hpp"
#include "kernel/reduce.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
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
    reducer.fold(buffers.all().first(1), from, bytes / reducer.element_bytes, streaming);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(inputs * bytes));
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

const std::vector<std::int64_t> kInputs{2, 4, 8};
const std::vector<std::int64_t> kSizes{64, 4 << 10, 64 << 10, 1 << 20, 64 << 20};

BENCHMARK_CAPTURE(fold, f32, sinew::DType::f32, false)->ArgsProduct({kInputs, kSizes});
BENCHMARK_CAPTURE(fold, bf16, sinew::DType::bf16, false)->ArgsProduct({kInputs, kSizes});
BENCHMARK_CAPTURE(fold, f32_streaming, sinew::DType::f32, true)->ArgsProduct({kInputs, kSizes});
BENCHMARK_CAPTURE(pair, f32, sinew::DType::f32)->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(pair, bf16, sinew::DType::bf16)->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(copy, plain, false)->ArgsProduct({kSizes});
BENCHMARK_CAPTURE(copy, streaming, true)->ArgsProduct({kSizes});

}  // namespace

BENCHMARK_MAIN();
