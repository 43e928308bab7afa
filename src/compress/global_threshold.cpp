#include "compress/global_threshold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include <sinew/error.hpp>

namespace sinew {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};
// So many values take no more bytes than the histogram of another digit, and no further exchange.
constexpr std::uint64_t kFew = 4096;
constexpr std::uint64_t kInOne = 512;  // so few travel with their number
constexpr int kDigitBits = 11;
constexpr std::size_t kBins = std::size_t{1} << kDigitBits;
constexpr int kFirstShift = 20;  // all magnitudes in so many bins
constexpr int kFineShift = 15;   // bins of a 256th of an octave, eight octaves of them

}  // namespace

// Thresholds move little from step to step: fine bins around the last one usually leave so few in
// the bin of the k-th that no further digit is needed. Where they do not reach it, all are counted.
GlobalThreshold::Share GlobalThreshold::find(Exchange& x, std::span<const float> values,
                                             std::uint64_t k) {
  constexpr Magnitude kReach = Magnitude{kBins / 2} << kFineShift;
  if (last_ > kReach)
    if (const auto share = search(x, values, k, last_ - kReach, kFineShift))
      return remember(*share);
  return remember(*search(x, values, k, 0, kFirstShift));
}

GlobalThreshold::Share GlobalThreshold::remember(Share share) {
  last_ = share.least;
  return share;
}

std::optional<GlobalThreshold::Share> GlobalThreshold::search(Exchange& x,
                                                              std::span<const float> values,
                                                              std::uint64_t k, Magnitude least,
                                                              int shift) {
  const bool is_window = least > 0;
  std::uint64_t larger = 0;
  std::size_t bins = kBins;
  for (bool is_first = true;; is_first = false) {
    mine_.assign(bins + 1, 0);  // the last is for what lies above
    count_magnitudes(values, least, shift, mine_);
    add_up(x);
    std::size_t bin = bins;
    while (larger + counts_[bin] < k && bin > 0) larger += counts_[bin--];
    const std::uint64_t tied = counts_[bin];
    if (is_first && is_window && (bin == bins || larger + tied < k)) return {};
    least += static_cast<Magnitude>(bin) << shift;
    if (larger + tied <= k) return Share{least, kAll};  // all that is at least `least`
    // What is taken never lies ahead of what it is taken from, which after the first digit is the
    // same vector.
    near_.resize(std::max(near_.size(), mine_[bin] + kBetweenSlack));
    values =
        std::span(near_).first(take_between(values, least, Magnitude{1} << shift, near_.data()));
    if (tied <= kFew) return among_all(x, values, tied, k - larger);
    if (shift == 0) return by_ties(x, least, values.size(), k - larger);
    const int next = std::max(0, shift - kDigitBits);
    bins = std::size_t{1} << (shift - next);
    shift = next;
  }
}

// Elements are counted in 32 bits, and no sum of disjoint parts is more than there are: whatever
// the type makes of the highest bit, adding modulo 2^32 is right.
void GlobalThreshold::add_up(Exchange& x) {
  counts_ = mine_;
  x.allreduce("thresholds",
              std::span(reinterpret_cast<std::int32_t*>(counts_.data()), counts_.size()));
}

// Everybody gets to see the `all` values that ranks have between them, in rank order: with their
// numbers where there are few, because ranks usually have about as many each, and else after them.
void GlobalThreshold::gather(Exchange& x, std::span<const float> mine, std::uint64_t all) {
  const auto ranks = static_cast<std::size_t>(x.size());
  const std::size_t room = all <= kInOne ? std::min<std::size_t>(all, 3 * all / ranks + 8) : 0;
  words_.assign(1 + room, 0);
  words_[0] = static_cast<std::int32_t>(mine.size());
  std::transform(
      mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(std::min(room, mine.size())),
      words_.begin() + 1, [](float value) { return std::bit_cast<std::int32_t>(value); });
  all_words_.resize(ranks * words_.size());
  x.allgather("thresholds", std::span<const std::int32_t>(words_), std::span(all_words_));
  sizes_.resize(ranks);
  std::size_t announced = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    sizes_[rank] = static_cast<std::uint32_t>(all_words_[rank * words_.size()]);
    if (sizes_[rank] > all - announced)
      throw Error(Errc::invalid_argument,
                  fmt::format("ranks counted {} values near the threshold, and up to rank {} there "
                              "are more",
                              all, rank),
                  {.peer = static_cast<int>(rank)});
    announced += sizes_[rank];
  }
  all_near_.resize(announced);
  if (std::any_of(sizes_.begin(), sizes_.end(), [&](std::size_t size) { return size > room; }))
    return x.allgatherv("thresholds", mine, std::span(all_near_), sizes_);
  auto to = all_near_.begin();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto* const from = all_words_.data() + rank * words_.size() + 1;
    to = std::transform(from, from + sizes_[rank], to,
                        [](std::int32_t word) { return std::bit_cast<float>(word); });
  }
}

// Of `all` values that ranks have between them, the `wanted` largest stay.
GlobalThreshold::Share GlobalThreshold::among_all(Exchange& x, std::span<const float> mine,
                                                  std::uint64_t all, std::uint64_t wanted) {
  gather(x, mine, all);
  if (all_near_.size() < wanted)
    throw Error(Errc::invalid_argument,
                fmt::format("ranks counted {} values near the threshold, and have {}", all,
                            all_near_.size()));
  sorted_ = all_near_;
  const auto at = sorted_.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
  std::nth_element(sorted_.begin(), at, sorted_.end(),
                   [](float a, float b) { return magnitude(a) > magnitude(b); });
  const auto least = magnitude(*at);
  const auto is_larger = [&](float value) { return magnitude(value) > least; };
  const auto is_tied = [&](float value) { return magnitude(value) == least; };
  std::uint64_t left =
      wanted - static_cast<std::uint64_t>(std::count_if(sorted_.begin(), sorted_.end(), is_larger));
  const float* part = all_near_.data();
  for (int rank = 0; rank < x.rank(); part += sizes_[static_cast<std::size_t>(rank++)])
    left -= std::min(left, static_cast<std::uint64_t>(std::count_if(
                               part, part + sizes_[static_cast<std::size_t>(rank)], is_tied)));
  const auto ties = static_cast<std::uint64_t>(std::count_if(mine.begin(), mine.end(), is_tied));
  return {least, left < ties ? left : kAll};
}

// All digits are found, and more values than may stay are exactly that.
GlobalThreshold::Share GlobalThreshold::by_ties(Exchange& x, Magnitude least, std::uint64_t mine,
                                                std::uint64_t wanted) {
  of_ranks_.resize(static_cast<std::size_t>(x.size()));
  x.allgather("thresholds", std::span<const std::uint64_t>(&mine, 1), std::span(of_ranks_));
  for (int rank = 0; rank < x.rank(); ++rank)
    wanted -= std::min(wanted, of_ranks_[static_cast<std::size_t>(rank)]);
  return {least, wanted < mine ? wanted : kAll};
}

}  // namespace sinew
