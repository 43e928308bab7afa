#include "model/overlap.hpp"

#include <algorithm>

namespace sinew {

double last_arrival(std::span<const Travelling> buckets) {
  double free = 0;
  for (const auto& bucket : buckets) free = std::max(bucket.ready, free) + bucket.takes;
  return free;
}

double exposed(std::span<const Travelling> buckets, double backward) {
  return std::max(0.0, last_arrival(buckets) - backward);
}

double prefetched(std::span<const Travelling> layers, std::span<const double> compute) {
  double arrived = 0, done = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    arrived = std::max(layers[i].ready, arrived) + layers[i].takes;
    done = std::max(arrived, done) + compute[i];
  }
  return done;
}

}  // namespace sinew
