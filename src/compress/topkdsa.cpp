// TopkDSA: each rank's k largest elements go to the owners of equal regions, who add them up; all
// sums go to everybody, each owner's as items or as a plain region, whichever is shorter.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "compress/items.hpp"
#include "compress/owner_sum.hpp"
#include "compress/regions.hpp"
#include "compress/schemes.hpp"
#include "kernel/top_k.hpp"

namespace sinew {
namespace {

std::span<std::uint8_t> as_u8(LargeBuffer<std::byte>& buffer, std::size_t bytes) {
  buffer.reserve(bytes);
  return {reinterpret_cast<std::uint8_t*>(buffer.data()), bytes};
}

std::size_t sum_of(std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

class TopkDsa final : public Scheme {
 public:
  explicit TopkDsa(const SchemeSetup& setup)
      : ranks_(static_cast<std::size_t>(setup.size)),
        me_(static_cast<std::size_t>(setup.rank)),
        regions_(equal_regions(setup.size, setup.elements)),
        top_(setup.elements, setup.target_items),
        sizes_(ranks_),
        their_sizes_(ranks_),
        dense_(ranks_) {}

  Outcome exchange(Exchange& x) override {
    const auto chosen = choose(x);
    x.report.local_items = chosen.indices.size();
    encode(x, chosen);
    if (!send_to_owners(x, chosen.finite)) return Outcome::non_finite;
    add_up(x);
    send_to_all(x);
    decode(x);
    x.feedback.take(chosen.indices);
    x.feedback.commit();
    return Outcome::done;
  }

 private:
  TopK::Chosen choose(Exchange& x) {
    const auto timed = x.time(Part::accumulate_select);
    const auto [kept, gone, sum] = x.feedback.begin();
    return top_.accumulate(x.gradient, {kept, gone}, sum);
  }

  void encode(Exchange& x, const TopK::Chosen& chosen) {
    const auto timed = x.time(Part::encode);
    outgoing_.reserve(most_item_bytes(chosen.indices.size()) + ranks_ * most_item_bytes(0));
    auto* at = outgoing_.data();
    auto begin = chosen.indices.begin();
    for (std::size_t owner = 0; owner < ranks_; ++owner) {
      const auto end = std::lower_bound(begin, chosen.indices.end(), regions_[owner + 1]);
      const auto first = static_cast<std::size_t>(begin - chosen.indices.begin());
      const auto count = static_cast<std::size_t>(end - begin);
      sizes_[owner] = encode_items({begin, end}, chosen.values.subspan(first, count),
                                   static_cast<std::uint32_t>(regions_[owner]), at);
      at += sizes_[owner];
      begin = end;
    }
  }

  // False: some rank has a NaN or an infinity, and everybody knows.
  bool send_to_owners(Exchange& x, bool finite) {
    words_.resize(ranks_);
    their_words_.resize(ranks_);
    for (std::size_t owner = 0; owner < ranks_; ++owner)
      words_[owner] = sizes_[owner] << 1 | (finite ? 0 : 1);
    x.alltoall("counts", std::span<const std::uint64_t>(words_), std::span(their_words_));
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if ((their_words_[rank] & 1) != 0) return false;
      their_sizes_[rank] =
          checked_bytes(their_words_[rank] >> 1, most_bytes(me_), static_cast<int>(rank));
    }
    x.alltoallv("split", std::span<const std::uint8_t>(as_u8(outgoing_, sum_of(sizes_))), sizes_,
                as_u8(incoming_, sum_of(their_sizes_)), their_sizes_);
    return true;
  }

  // Of a message about that region, in either form.
  [[nodiscard]] std::uint64_t most_bytes(std::size_t region) const {
    return most_item_bytes(width(region));
  }

  // In rank order, coordinate by coordinate; then written in the shorter of the two forms.
  void add_up(Exchange& x) {
    const auto timed = x.time(Part::reduce);
    lists_.clear();
    const auto* at = incoming_.data();
    for (std::size_t rank = 0; rank < ranks_; at += their_sizes_[rank++])
      lists_.emplace_back(std::span(at, their_sizes_[rank]), regions_[me_], regions_[me_ + 1],
                          static_cast<int>(rank));
    sums_.add(lists_);
    const auto [indices, sums] = sums_.items();
    outgoing_.reserve(most_item_bytes(sums.size()));
    written_ =
        encode_items(indices, sums, static_cast<std::uint32_t>(regions_[me_]), outgoing_.data());
    const auto plain = width(me_) * sizeof(float);
    writes_dense_ = written_ >= plain;
    if (writes_dense_) write_region(plain);
  }

  void write_region(std::size_t bytes) {
    written_ = bytes;
    outgoing_.reserve(bytes);
    std::memset(outgoing_.data(), 0, bytes);
    const auto [indices, sums] = sums_.items();
    for (std::size_t i = 0; i < sums.size(); ++i)
      std::memcpy(outgoing_.data() + (indices[i] - regions_[me_]) * sizeof(float), &sums[i],
                  sizeof(float));
  }

  void send_to_all(Exchange& x) {
    const std::uint64_t mine[] = {written_ << 1 | (writes_dense_ ? 1 : 0), sums_.sums().size()};
    words_.resize(2 * ranks_);
    x.allgather("counts", std::span<const std::uint64_t>(mine), std::span(words_));
    x.report.items = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      sizes_[rank] = checked_bytes(words_[2 * rank] >> 1, most_bytes(rank), static_cast<int>(rank));
      dense_[rank] = (words_[2 * rank] & 1) != 0;
      x.report.items += words_[2 * rank + 1];
    }
    x.allgatherv("gather", std::span<const std::uint8_t>(as_u8(outgoing_, written_)),
                 as_u8(incoming_, sum_of(sizes_)), sizes_);
  }

  void decode(Exchange& x) {
    const auto timed = x.time(Part::decode);
    std::fill(x.gradient.begin(), x.gradient.end(), 0.0F);
    const float divisor = x.divisor();
    const auto* at = incoming_.data();
    for (std::size_t owner = 0; owner < ranks_; at += sizes_[owner++]) {
      if (dense_[owner]) {
        const auto region = x.gradient.subspan(regions_[owner], width(owner));
        const auto bytes = std::min(region.size_bytes(), sizes_[owner]);
        if (bytes > 0) std::memcpy(region.data(), at, bytes);
        for (float& value : region) value /= divisor;
        continue;
      }
      for (ItemReader reader({at, sizes_[owner]}, regions_[owner], regions_[owner + 1],
                             static_cast<int>(owner));
           !reader.at_end(); reader.advance())
        x.gradient[reader.index()] = reader.value() / divisor;
    }
  }

  [[nodiscard]] std::size_t width(std::size_t owner) const {
    return regions_[owner + 1] - regions_[owner];
  }

  std::size_t ranks_, me_;
  std::vector<std::uint64_t> regions_;
  TopK top_;
  OwnerSum sums_;  // of my region
  LargeBuffer<std::byte> outgoing_, incoming_;
  std::vector<std::uint64_t> words_, their_words_;
  std::vector<std::size_t> sizes_, their_sizes_;
  std::vector<bool> dense_;  // owners that sent their region as it is
  std::vector<ItemReader> lists_;
  std::size_t written_ = 0;
  bool writes_dense_ = false;
};

}  // namespace

std::unique_ptr<Scheme> make_topkdsa(const SchemeSetup& setup) {
  return std::make_unique<TopkDsa>(setup);
}

}  // namespace sinew
