// Selection on the GPU against the plain loop on the CPU, bit for bit. Exits with 77 (skipped)
// where there is no GPU.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "cuda/select.hpp"

namespace {

using sinew::Magnitude;

template <class T>
class DeviceVector {
 public:
  explicit DeviceVector(std::size_t size) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, (size + 1) * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
    data_ = static_cast<T*>(memory);
    cudaMemset(data_, 0xA5, (size + 1) * sizeof(T));
  }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;
  ~DeviceVector() { cudaFree(data_); }
  [[nodiscard]] T* data(std::size_t offset = 0) const { return data_ + offset; }
  void put(const std::vector<T>& from, std::size_t offset) {
    cudaMemcpy(data_ + offset, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice);
  }
  [[nodiscard]] std::vector<T> get(std::size_t size, std::size_t offset = 0) const {
    std::vector<T> host(size);
    cudaMemcpy(host.data(), data_ + offset, size * sizeof(T), cudaMemcpyDeviceToHost);
    return host;
  }

 private:
  T* data_ = nullptr;
};

struct Case {
  std::size_t elements;
  double density;        // of what is selected; 1: everything
  std::size_t capacity;  // of the room for items
  std::size_t offset;    // of all vectors, in elements: 1 is not aligned
  bool in_place;         // the sum replaces what was kept
  bool odd_values;       // NaN, infinities, zeros of both signs, denormals
};

std::vector<float> heavy_tailed(std::size_t elements, unsigned seed, bool odd_values) {
  std::mt19937 random(seed);
  std::exponential_distribution<float> size(1);
  std::vector<float> values(elements);
  for (auto& value : values) value = size(random) * ((random() & 1) != 0 ? -0.01F : 0.01F);
  if (!odd_values) return values;
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                       -0.0F,
                       0.0F,
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::denorm_min(),
                       1e-40F};
  for (std::size_t i = 0; i < elements; i += 1 + random() % 50) values[i] = odd[random() % 7];
  return values;
}

Magnitude floor_for(const std::vector<float>& gradient, const std::vector<float>& kept,
                    double density) {
  if (density >= 1 || gradient.empty()) return 0;
  std::vector<Magnitude> all(gradient.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = sinew::magnitude(gradient[i] + kept[i]);
  const auto at = static_cast<std::ptrdiff_t>((1 - density) * static_cast<double>(all.size() - 1));
  std::nth_element(all.begin(), all.begin() + at, all.end());
  return all[static_cast<std::size_t>(at)];
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b, std::size_t size) {
  return std::memcmp(a.data(), b.data(), size * sizeof(T)) == 0;
}

std::string fault(const Case& c, sinew::cuda::Selector& selector) {
  const auto gradient = heavy_tailed(c.elements, 1, c.odd_values);
  const auto kept = heavy_tailed(c.elements, 2, c.odd_values);
  const auto floor = floor_for(gradient, kept, c.density);
  std::vector<float> sum(c.elements), values(c.capacity);
  std::vector<std::uint32_t> indices(c.capacity);
  const auto count = sinew::accumulate_select_scalar(gradient, kept, sum, floor,
                                                     {indices.data(), values.data(), c.capacity});

  DeviceVector<float> on_gradient(c.elements + 1), on_kept(c.elements + 1), on_sum(c.elements + 1),
      on_values(c.capacity);
  DeviceVector<std::uint32_t> on_indices(c.capacity), on_count(1);
  on_gradient.put(gradient, c.offset);
  on_kept.put(kept, c.offset);
  const auto& target = c.in_place ? on_kept : on_sum;
  selector.accumulate_select(on_gradient.data(c.offset), on_kept.data(c.offset),
                             target.data(c.offset), c.elements, floor,
                             {on_indices.data(), on_values.data(),
                              static_cast<std::uint32_t>(c.capacity), on_count.data()},
                             nullptr);
  if (const auto status = cudaDeviceSynchronize(); status != cudaSuccess)
    return cudaGetErrorString(status);
  const auto stored = std::min(count, c.capacity);
  if (on_count.get(1)[0] != count)
    return "count " + std::to_string(on_count.get(1)[0]) + ", not " + std::to_string(count);
  // A NaN that comes out of an addition has other bits on a GPU; where it is must agree.
  auto device_sum = target.get(c.elements, c.offset), device_values = on_values.get(stored);
  for (auto* vector : {&sum, &values, &device_sum, &device_values})
    for (auto& value : *vector)
      if (value != value) value = std::numeric_limits<float>::quiet_NaN();
  if (!same_bits(device_sum, sum, c.elements)) return "another sum";
  if (!same_bits(on_indices.get(stored), indices, stored)) return "other indices";
  if (!same_bits(device_values, values, stored)) return "other values";
  return "";
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no GPU here: nothing was checked");
    return 77;
  }
  constexpr std::size_t kLargest = 27'569'568;
  sinew::cuda::Selector selector(kLargest);
  int wrong = 0, checked = 0;
  for (const std::size_t elements :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4095}, std::size_t{4096},
        std::size_t{4097}, std::size_t{1'000'003}, kLargest})
    for (const double density : {0.02, 0.0001, 0.5, 1.0})
      for (const std::size_t offset : {0, 1})
        for (const int kind : {0, 1, 2, 3}) {
          if (elements == kLargest && (offset != 0 || kind > 1 || density == 0.5)) continue;
          const Case c{elements, density,       kind == 2 ? elements / 100 : elements,
                       offset,   kind % 2 == 1, kind == 3};
          const auto what = fault(c, selector);
          ++checked;
          if (what.empty()) continue;
          ++wrong;
          std::printf("%zu elements, density %g, offset %zu, kind %d: %s\n", elements, density,
                      offset, kind, what.c_str());
        }
  std::printf("%d cases, %d wrong\n", checked, wrong);
  return wrong == 0 ? 0 : 1;
}
