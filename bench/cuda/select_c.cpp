// The selection on a GPU as C functions, for bench/cuda/select.py.
#include <cstdio>

#include "cuda/select.hpp"

extern "C" {

void* sinew_selector(std::size_t elements) { return new sinew::cuda::Selector(elements); }

int sinew_accumulate_select(void* selector, const float* gradient, const float* kept, float* sum,
                            std::size_t elements, std::uint32_t floor, std::uint32_t* indices,
                            float* values, std::uint32_t capacity, std::uint32_t* count,
                            void* stream) {
  try {
    static_cast<sinew::cuda::Selector*>(selector)->accumulate_select(
        gradient, kept, sum, elements, floor, {indices, values, capacity, count},
        static_cast<cudaStream_t>(stream));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

std::size_t sinew_accumulate_select_on_cpu(const float* gradient, const float* kept, float* sum,
                                           std::size_t elements, std::uint32_t floor,
                                           std::uint32_t* indices, float* values,
                                           std::size_t capacity) {
  return sinew::accumulate_select_scalar({gradient, elements}, {kept, elements}, {sum, elements},
                                         floor, {indices, values, capacity});
}
}
