// Selection by magnitude on a GPU: what kernel/select.hpp does, over device memory, with the same
// bits as a result.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernel/select.hpp"

namespace sinew::cuda {

/// Where selected elements go, in device memory: ascending indices and their values. `count` gets
/// how many there are; of more than `capacity`, the first ones are stored.
struct DeviceItems {
  std::uint32_t* indices = nullptr;
  float* values = nullptr;
  std::uint32_t capacity = 0;
  std::uint32_t* count = nullptr;
};

/// Selects from vectors of up to `elements`. Keeps a byte of device memory for each, on
/// the device that is current when it is made; used by one stream at a time.
class Selector {
 public:
  explicit Selector(std::size_t elements);
  Selector(const Selector&) = delete;
  Selector& operator=(const Selector&) = delete;
  ~Selector();

  /// sum = gradient + kept, and every element of the sum of at least `floor` goes into `items`.
  /// `sum` may be `kept` or `gradient`. Enqueued on the stream; throws Error{system} if that fails.
  void accumulate_select(const float* gradient, const float* kept, float* sum, std::size_t elements,
                         Magnitude floor, const DeviceItems& items, cudaStream_t stream);

 private:
  std::size_t elements_;
  std::uint32_t* counts_ = nullptr;  // of the items of each tile, in device memory
  std::uint32_t* indices_ = nullptr;
  float* values_ = nullptr;
};

}  // namespace sinew::cuda
