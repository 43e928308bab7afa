// TopkA: each rank's k largest elements to everybody; everybody adds them up.
#include <algorithm>
#include <cstring>
#include <vector>

#include "compress/items.hpp"
#include "compress/owner_sum.hpp"
#include "compress/schemes.hpp"
#include "kernel/top_k.hpp"

namespace sinew {
namespace {

class TopkA final : public Scheme {
 public:
  explicit TopkA(const SchemeSetup& setup)
      : elements_(static_cast<std::uint32_t>(setup.elements)),
        top_(setup.elements, setup.target_items),
        sizes_(static_cast<std::size_t>(setup.size)) {}

  Outcome exchange(Exchange& x) override {
    const auto chosen = choose(x);
    std::size_t bytes = 0;
    {
      const auto timed = x.time(Part::encode);
      mine_.reserve(most_item_bytes(chosen.indices.size()));
      bytes = encode_items(chosen.indices, chosen.values, 0, mine_.data());
    }
    // One word for each rank: how long its message is, and whether it has something not finite.
    const std::uint64_t word = bytes << 1 | (chosen.finite ? 0 : 1);
    words_.resize(sizes_.size());
    x.allgather("counts", std::span(&word, 1), std::span(words_));
    if (std::any_of(words_.begin(), words_.end(), [](auto w) { return (w & 1) != 0; }))
      return Outcome::non_finite;
    std::transform(words_.begin(), words_.end(), sizes_.begin(), [](auto w) { return w >> 1; });
    add_up(x, std::as_bytes(std::span(mine_.data(), bytes)));
    x.report.local_items = chosen.indices.size();
    x.feedback.take(chosen.indices);
    x.feedback.commit();
    return Outcome::done;
  }

 private:
  TopK::Chosen choose(Exchange& x) {
    const auto timed = x.time(Part::accumulate_select);
    const auto sum = x.feedback.begin();
    return top_.accumulate(x.gradient, x.feedback.kept(), sum);
  }

  void add_up(Exchange& x, std::span<const std::byte> mine) {
    std::size_t total = 0;
    for (const auto size : sizes_) total += size;
    all_.reserve(total);
    const std::span<const std::uint8_t> out(reinterpret_cast<const std::uint8_t*>(mine.data()),
                                            mine.size());
    x.allgatherv("items", out, std::span(reinterpret_cast<std::uint8_t*>(all_.data()), total),
                 sizes_);
    const auto timed = x.time(Part::reduce);
    lists_.clear();
    const std::byte* at = all_.data();
    for (std::size_t rank = 0; rank < sizes_.size(); at += sizes_[rank++])
      lists_.emplace_back(std::span(at, sizes_[rank]), 0, elements_, static_cast<int>(rank));
    std::memset(x.gradient.data(), 0, x.gradient.size_bytes());
    const float divisor = x.divisor();
    x.report.items = owner_.add(
        lists_, [&](std::uint32_t index, float sum) { x.gradient[index] = sum / divisor; });
  }

  std::uint32_t elements_;
  TopK top_;
  OwnerSum owner_;
  LargeBuffer<std::byte> mine_, all_;
  std::vector<std::uint64_t> words_;
  std::vector<std::size_t> sizes_;
  std::vector<ItemReader> lists_;
};

}  // namespace

std::unique_ptr<Scheme> make_topka(const SchemeSetup& setup) {
  return std::make_unique<TopkA>(setup);
}

}  // namespace sinew
