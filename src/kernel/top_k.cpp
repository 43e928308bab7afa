#include "kernel/top_k.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace sinew {
namespace {

// Clusters of neighbours, because a cache line costs the same whether one element of it is read or
// four.
constexpr std::size_t kCluster = 4, kFewestClusters = 1024, kMostClusters = 16384;
// Four of them fit the nearest cache, so that neighbours can be counted apart.
constexpr std::size_t kBins = 1024;
constexpr int kFine = 13, kCoarse = 21;  // bits of a magnitude within a bin
// How far below the k-th the bound is put, in standard deviations of the sample: five, and half as
// many again because neighbours resemble each other.
constexpr double kDeviations = 7.5;

// Past this the sum does not stay in cache.
constexpr std::size_t kStreamingElements = std::size_t{1} << 20;

// A larger sample takes time, a smaller one puts the bound lower, and what lies between it and the
// k-th takes time, too: about twice as long an element. This is where the two together are least.
std::size_t clusters_for(std::size_t elements, double share) {
  const double best =
      std::cbrt(std::pow(kDeviations * static_cast<double>(elements) * std::sqrt(share), 2));
  return std::clamp(static_cast<std::size_t>(best) / kCluster, kFewestClusters, kMostClusters);
}

}  // namespace

TopK::TopK(std::size_t elements, std::size_t items)
    : elements_(elements), items_(std::min(items, elements)) {
  const double share =
      elements == 0 ? 0 : static_cast<double>(items_) / static_cast<double>(elements);
  clusters_ = clusters_for(elements, share);
  if (elements <= 2 * clusters_ * kCluster) clusters_ = 0;
  const auto sampled = static_cast<double>(clusters_ > 0 ? clusters_ * kCluster : elements);
  const double expected = sampled * share;
  const double spread = kDeviations * std::sqrt(expected * (1 - share)) + 12;
  sample_rank_ = clusters_ > 0 ? static_cast<std::size_t>(expected + spread) : items_;
  const double most =
      sampled == 0 ? 0 : (expected + 2 * spread + 64) / sampled * static_cast<double>(elements);
  capacity_ = std::min(elements, static_cast<std::size_t>(most));
  counts_.resize(kBins + 1);
}

/// The k-th of what goes into it lies just above the floor: fine bins begin there.
ItemRoom TopK::room(Magnitude floor) {
  std::fill(counts_.begin(), counts_.end(), 0);
  return {indices_.data(), values_.data(), capacity_, {counts_, floor, kFine}};
}

void TopK::reserve(std::size_t candidates) {
  indices_.reserve(candidates + kSelectSlack);
  values_.reserve(candidates + kSelectSlack);
  boundary_.reserve(candidates + kBetweenSlack);  // nothing may throw once elements are taken
}

// What is at least the result is a little more than k elements, unless the sample misleads. No
// cluster is in any cache, so that many are fetched ahead.
template <class Get, class Fetch>
Magnitude TopK::bound_from_sample(Get get, Fetch fetch) {
  sample_.resize(clusters_ > 0 ? clusters_ * kCluster : elements_);
  if (clusters_ > 0) {
    constexpr std::size_t kAhead = 16;
    const auto stride = elements_ / clusters_;
    std::uint64_t jitter = 0x9E3779B97F4A7C15U;  // so that no period of the data can hide
    std::array<std::size_t, kAhead> firsts{};
    auto* to = sample_.data();
    for (std::size_t cluster = 0; cluster < clusters_ + kAhead; ++cluster) {
      auto& first = firsts[cluster % kAhead];
      if (cluster >= kAhead)
        for (std::size_t i = first; i < first + kCluster; ++i) *to++ = get(i);
      if (cluster >= clusters_) continue;
      jitter = jitter * 6364136223846793005U + 1442695040888963407U;
      first = cluster * stride + (jitter >> 33) % (stride - kCluster + 1);
      fetch(first);
    }
  } else {
    for (std::size_t i = 0; i < elements_; ++i) sample_[i] = get(i);
  }
  if (sample_rank_ >= sample_.size() || sample_rank_ == 0) return kSmallest;
  return std::max(kth_of_sample(), kSmallest);
}

Magnitude TopK::kth_of_sample() {
  std::fill(counts_.begin(), counts_.end(), 0);
  count_magnitudes(sample_, 0, kCoarse, counts_);  // all magnitudes there are
  std::size_t larger = 0, bin = kBins - 1;
  while (larger + counts_[bin] < sample_rank_ && bin > 0) larger += counts_[bin--];
  const auto wanted = counts_[bin] - std::min<std::size_t>(sample_rank_ - larger, counts_[bin]);
  return find_between(sample_, static_cast<Magnitude>(bin) << kCoarse, Magnitude{1} << kCoarse,
                      counts_[bin], wanted);
}

/// Of the `count` values from `low` on the one that `smaller` others come before.
Magnitude TopK::find_between(std::span<const float> values, Magnitude low, Magnitude width,
                             std::size_t count, std::size_t smaller) {
  boundary_.resize(count + kBetweenSlack);
  boundary_.resize(take_between(values, low, width, boundary_.data()));
  const auto at = boundary_.begin() + static_cast<std::ptrdiff_t>(smaller);
  std::nth_element(boundary_.begin(), at, boundary_.end(),
                   [](float a, float b) { return magnitude(a) < magnitude(b); });
  return magnitude(*at);
}

TopK::Chosen TopK::accumulate(std::span<const float> gradient, Kept kept, std::span<float> sum) {
  reserve(capacity_);
  const auto floor = bound_from_sample([&](std::size_t i) { return gradient[i] + kept[i]; },
                                       [&](std::size_t i) {
                                         __builtin_prefetch(&gradient[i]);
                                         __builtin_prefetch(&kept.values[i]);
                                         if (!kept.gone.empty())
                                           __builtin_prefetch(&kept.gone[i / 64]);
                                       });
  // In place the lines that are written have just been read: streaming would only push them out.
  const bool streaming = elements_ >= kStreamingElements && sum.data() != kept.values.data();
  const auto found = accumulate_select(gradient, kept, sum, floor, room(floor), streaming);
  return finish(sum, floor, found, {});
}

TopK::Chosen TopK::choose(std::span<const float> values) {
  reserve(capacity_);
  const auto floor = bound_from_sample([&](std::size_t i) { return values[i]; },
                                       [&](std::size_t i) { __builtin_prefetch(&values[i]); });
  return finish(values, floor, select(values, floor, room(floor)), {});
}

TopK::Chosen TopK::choose_taking(std::span<float> values, Magnitude likely) {
  if (likely >= kUnreached || items_ == 0) return choose(values);
  reserve(capacity_);
  const auto floor = bound_from_sample([&](std::size_t i) { return values[i]; },
                                       [&](std::size_t i) { __builtin_prefetch(&values[i]); });
  const Taking taking{values, std::max(likely, floor)};
  return finish(values, floor, select_taking(values, floor, taking.least, room(floor)), taking);
}

void TopK::put_back(const Taking& taking, std::size_t items) const {
  for (std::size_t i = 0; i < items; ++i)
    if (magnitude(values_.data()[i]) >= taking.least)
      taking.from[indices_.data()[i]] = values_.data()[i];
}

TopK::Chosen TopK::finish(std::span<const float> sum, Magnitude floor, std::size_t found,
                          Taking taking) {
  scanned_again_ = found > capacity_ || (found < items_ && floor > kSmallest);
  if (items_ == 0) return {};
  const bool has_surplus = !scanned_again_ && found > items_;
  const auto least = has_surplus ? find_least(floor, found) : Kth{};
  // What will not be chosen must not be gone.
  if (scanned_again_ || taking.least <= least.magnitude) {
    put_back(taking, std::min(found, capacity_));
    taking.least = kUnreached;
  }
  std::size_t count = found;
  if (scanned_again_)
    count = choose_again(sum);
  else if (has_surplus)
    count =
        drop_ties(keep_items({indices_.data(), values_.data(), capacity_}, found, least.magnitude),
                  least.magnitude, items_ - least.larger);
  const std::span<const float> values(values_.data(), count);
  // Whatever is not finite has the largest magnitude of all, so that it is among the chosen.
  return {{indices_.data(), count}, values, all_finite(values), taking.least};
}

// Coarse bins take over where the k-th lies above the fine ones, in which candidates were counted
// on their way.
Kth TopK::find_least(Magnitude floor, std::size_t found) {
  const std::span<float> values(values_.data(), found);
  const std::size_t surplus = found - items_;
  auto from = floor;
  Magnitude least = 0;
  std::size_t below = 0;
  for (const int shift : {kFine, kCoarse}) {
    if (shift == kCoarse) {
      std::fill(counts_.begin(), counts_.end(), 0);
      count_magnitudes(values, from, shift, counts_);
    }
    std::size_t bin = 0;
    while (below + counts_[bin] <= surplus && bin < kBins) below += counts_[bin++];
    const auto width = Magnitude{1} << shift;
    from += static_cast<Magnitude>(bin) * width;
    if (bin == kBins) continue;
    least = find_between(values, from, width, counts_[bin], surplus - below);
    break;
  }
  const auto above = found - below - boundary_.size();
  return {least, above + static_cast<std::size_t>(
                             std::count_if(boundary_.begin(), boundary_.end(),
                                           [&](float v) { return magnitude(v) > least; }))};
}

// Of those equal to the least, the first `wanted` stay.
std::size_t TopK::drop_ties(std::size_t count, Magnitude least, std::size_t wanted) {
  if (count == items_) return count;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool tied = magnitude(values_.data()[i]) == least;
    if (tied && wanted == 0) continue;
    if (tied) --wanted;
    indices_.data()[kept] = indices_.data()[i];
    values_.data()[kept++] = values_.data()[i];
  }
  return kept;
}

// The long way, for data that no sample shows: many equal values, or a few large ones in a corner.
std::size_t TopK::choose_again(std::span<const float> sum) {
  const auto kth = kth_magnitude(sum, items_);
  const auto least = std::max(kth.magnitude, kSmallest);
  std::size_t ties = kth.magnitude >= kSmallest ? items_ - kth.larger : 0;
  reserve(items_);
  std::size_t count = 0;
  for (std::size_t i = 0; i < sum.size() && count < items_; ++i) {
    const auto m = magnitude(sum[i]);
    if (m < least || (m == kth.magnitude && ties == 0)) continue;
    if (m == kth.magnitude) --ties;
    indices_.data()[count] = static_cast<std::uint32_t>(i);
    values_.data()[count++] = sum[i];
  }
  return count;
}

Kth kth_magnitude(std::span<const float> values, std::size_t k) {
  // The 31 bits of a magnitude in three digits, the highest first.
  constexpr struct {
    int shift;
    std::size_t bins;
  } kDigits[] = {{20, 2048}, {9, 2048}, {0, 512}};
  Kth kth;
  std::vector<std::uint32_t> counts;
  for (const auto& [shift, bins] : kDigits) {
    counts.assign(bins + 1, 0);  // the last is for all above the digit's range
    count_magnitudes(values, kth.magnitude, shift, counts);
    std::size_t larger = counts[bins], bin = bins - 1;
    while (larger + counts[bin] < k && bin > 0) larger += counts[bin--];
    kth.larger = larger;
    kth.magnitude += static_cast<Magnitude>(bin) << shift;
  }
  return kth;
}

}  // namespace sinew
