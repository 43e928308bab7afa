// The k elements of largest magnitude, exactly, in little more than one pass: a sample bounds the
// k-th magnitude from below, one scan collects what is above the bound, and a histogram of those
// few finds the k-th itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/large_buffer.hpp"
#include "kernel/select.hpp"

namespace sinew {

struct Kth {
  Magnitude magnitude = 0;
  std::size_t larger = 0;  // elements above it
};

class TopK {
 public:
  /// For vectors of `elements`; `items` of them are wanted. Both may be 0.
  TopK(std::size_t elements, std::size_t items);

  /// Ascending indices and their values: exactly min(k, nonzeros), ties by lowest index. Valid
  /// until the next call.
  struct Chosen {
    std::span<const std::uint32_t> indices;
    std::span<const float> values;
    bool finite = true;            // whether all elements are, not only the chosen
    Magnitude taken = kUnreached;  // chosen elements of at least so much are 0 where they were
  };
  /// sum = gradient + kept, and the largest of it. `sum` may be `kept`.
  Chosen accumulate(std::span<const float> gradient, Kept kept, std::span<float> sum);
  Chosen choose(std::span<const float> values);
  /// And of the chosen those of at least `likely` become 0 at once, if that is above the least of
  /// them: cheaper than later, because they are in cache now.
  Chosen choose_taking(std::span<float> values, Magnitude likely);

  /// Whether the last call had to scan again because the sample misled it.
  [[nodiscard]] bool scanned_again() const noexcept { return scanned_again_; }

 private:
  template <class Get, class Fetch>
  Magnitude bound_from_sample(Get get, Fetch fetch);
  Magnitude kth_of_sample();
  Magnitude find_between(std::span<const float> values, Magnitude low, Magnitude width,
                         std::size_t count, std::size_t smaller);
  struct Taking {
    std::span<float> from = {};
    Magnitude least = kUnreached;
  };
  Chosen finish(std::span<const float> sum, Magnitude floor, std::size_t found, Taking taking);
  void put_back(const Taking& taking, std::size_t items) const;
  Kth find_least(Magnitude floor, std::size_t found);
  std::size_t drop_ties(std::size_t count, Magnitude least, std::size_t wanted);
  std::size_t choose_again(std::span<const float> sum);
  void reserve(std::size_t candidates);
  ItemRoom room(Magnitude floor);

  std::size_t elements_, items_;
  std::size_t clusters_ = 0;     // that are sampled; 0: all elements are
  std::size_t sample_rank_ = 0;  // which of the sample, from the largest, is the bound
  std::size_t capacity_ = 0;
  LargeBuffer<std::uint32_t> indices_;
  LargeBuffer<float> values_;
  std::vector<float> sample_;
  std::vector<float> boundary_;
  std::vector<std::uint32_t> counts_;  // of candidates just above the bound
  bool scanned_again_ = false;
};

/// The exact k-th largest magnitude, k from 1 to values.size(), in three passes whatever the data.
Kth kth_magnitude(std::span<const float> values, std::size_t k);

}  // namespace sinew
