// Ok-Topk: every rank owns a region of the gradient. Ranks send their k largest elements to the
// owners, who add them up; the k largest of all sums go to everybody.
//
// Two schedules with an exchange of counts before each, because how much there is to send is known
// only after selecting: an alltoall of ragged parts (split and reduce), and an allgather of ragged
// parts, balanced first where owners have very different amounts. Thresholds are exact in every
// step: nothing drifts, and nothing is recomputed now and then.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <vector>

#include <sinew/error.hpp>
#include "compress/global_threshold.hpp"
#include "compress/items.hpp"
#include "compress/owner_sum.hpp"
#include "compress/regions.hpp"
#include "compress/schemes.hpp"
#include "kernel/top_k.hpp"

namespace sinew {
namespace {

constexpr std::string_view kRegionsName = "oktopk/regions";
// Owners who got more than this times their share of items: regions are cut again.
constexpr double kSkewed = 1.1;
constexpr std::uint32_t kMarks = 16384;

class ByteBuffer {
 public:
  std::byte* with_room(std::size_t bytes) {
    memory_.grow(bytes);
    return memory_.data();
  }
  [[nodiscard]] std::span<const std::uint8_t> first(std::size_t bytes) const {
    return {reinterpret_cast<const std::uint8_t*>(memory_.data()), bytes};
  }
  std::span<std::uint8_t> room(std::size_t bytes) {
    return {reinterpret_cast<std::uint8_t*>(with_room(bytes)), bytes};
  }
  [[nodiscard]] const std::byte* data() const { return memory_.data(); }

 private:
  LargeBuffer<std::byte> memory_;
};

std::size_t sum_of(std::span<const std::size_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

class OkTopk final : public Scheme {
 public:
  explicit OkTopk(const SchemeSetup& setup)
      : elements_(setup.elements),
        target_(setup.target_items),
        ranks_(static_cast<std::size_t>(setup.size)),
        period_(setup.parameters->whole("repartition")),
        balance_over_((*setup.parameters)["balance_over"]),
        top_(setup.elements, setup.target_items),
        owned_(ranks_),
        sizes_(ranks_),
        their_sizes_(ranks_) {}

  Outcome exchange(Exchange& x) override {
    if (target_ >= elements_) return Outcome::dense;
    const auto chosen = choose(x);
    x.report.local_items = chosen.indices.size();
    if (age_ == 0) cut_regions(x, chosen.indices);
    if (!send_to_owners(x, chosen)) return Outcome::non_finite;
    add_up(x);
    select_largest(x);
    send_to_all(x);
    finish(x, chosen);
    return Outcome::done;
  }

  void save(State& state) const override {
    std::vector<std::uint64_t> words{elements_, age_};
    words.insert(words.end(), regions_.begin(), regions_.end());
    state.put(std::string(kRegionsName), std::span<const std::uint64_t>(words));
  }
  // Those of another rank count or another gradient are of no use: the next step cuts new ones.
  void load(const State& state) override {
    const auto words = state.get<std::uint64_t>(kRegionsName);
    threshold_ = {};  // where the search for it begins is the same on all ranks
    age_ = 0;
    if (words.size() != 2 + ranks_ + 1 || words[0] != elements_) return;
    regions_.assign(words.begin() + 2, words.end());
    age_ = words[1];
  }

 private:
  TopK::Chosen choose(Exchange& x) {
    const auto timed = x.time(Part::accumulate_select);
    if (x.far != nullptr) {
      if (const auto least = threshold_.last(); least > 0)
        x.far->expect(std::bit_cast<float>(least));
      const auto [items, finite, taken] = x.far->choose(target_);
      return {items.indices, items.values, finite, magnitude(taken)};
    }
    const auto [kept, gone, sum] = x.feedback.begin();
    return top_.accumulate(x.gradient, {kept, gone}, sum);
  }

  void cut_regions(Exchange& x, std::span<const std::uint32_t> indices) {
    words_.resize(kQuantiles + 1);
    all_words_.resize(ranks_ * words_.size());
    put_quantiles(indices, words_);
    x.allgather("regions", std::span<const std::uint64_t>(words_), std::span(all_words_));
    regions_ = balanced_regions(all_words_, static_cast<int>(ranks_), elements_);
  }

  // False: some rank has a NaN or an infinity, and everybody knows.
  bool send_to_owners(Exchange& x, const TopK::Chosen& chosen) {
    encode_regions(x, chosen);
    // The length of each message, and in its lowest bit whether the sender is all finite.
    words_.resize(ranks_);
    all_words_.resize(ranks_);
    for (std::size_t owner = 0; owner < ranks_; ++owner)
      words_[owner] = sizes_[owner] << 1 | (chosen.finite ? 0 : 1);
    x.alltoall("counts", std::span<const std::uint64_t>(words_), std::span(all_words_));
    if (std::any_of(all_words_.begin(), all_words_.end(),
                    [](auto word) { return (word & 1) != 0; }))
      return false;
    const auto me = static_cast<std::size_t>(x.rank());
    const auto most = most_item_bytes(std::min(target_, regions_[me + 1] - regions_[me]));
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      their_sizes_[rank] = checked_bytes(all_words_[rank] >> 1, most, static_cast<int>(rank));
    x.alltoallv("split", outgoing_.first(sum_of(sizes_)), sizes_,
                incoming_.room(sum_of(their_sizes_)), their_sizes_, likely_bytes());
    return true;
  }

  // Of all of a rank's items.
  [[nodiscard]] std::uint64_t likely_bytes() const { return target_ * (sizeof(float) + 1); }

  void encode_regions(Exchange& x, const TopK::Chosen& chosen) {
    const auto timed = x.time(Part::encode);
    auto* at = outgoing_.with_room(most_item_bytes(chosen.indices.size()) + 4 * ranks_);
    std::size_t begin = 0;
    for (std::size_t owner = 0; owner < ranks_; ++owner) {
      const auto end = static_cast<std::size_t>(
          std::lower_bound(chosen.indices.begin() + static_cast<std::ptrdiff_t>(begin),
                           chosen.indices.end(), regions_[owner + 1]) -
          chosen.indices.begin());
      const SparseItems theirs{chosen.indices.subspan(begin, end - begin),
                               chosen.values.subspan(begin, end - begin)};
      begin = end;
      sizes_[owner] = 0;
      if (owner == static_cast<std::size_t>(x.rank())) {
        mine_ = theirs;
        continue;
      }
      sizes_[owner] = encode_items(theirs.indices, theirs.values,
                                   static_cast<std::uint32_t>(regions_[owner]), at);
      at += sizes_[owner];
    }
  }

  // In rank order, coordinate by coordinate.
  void add_up(Exchange& x) {
    const auto timed = x.time(Part::reduce);
    const auto me = static_cast<std::size_t>(x.rank());
    lists_.clear();
    received_ = mine_.indices.size();
    const auto* at = incoming_.data();
    for (std::size_t rank = 0; rank < ranks_; at += their_sizes_[rank++]) {
      if (rank == me) continue;
      lists_.emplace_back(std::span(at, their_sizes_[rank]), regions_[me], regions_[me + 1],
                          static_cast<int>(rank));
      received_ += lists_.back().items();
    }
    sums_.add(lists_, {mine_, me});
  }

  // Of all owners' sums the k largest stay.
  void select_largest(Exchange& x) {
    const auto timed = x.time(Part::reduce);
    const auto [least, ties] = threshold_.find(x, sums_.sums(), target_);
    sums_.keep_largest(least, ties);
  }

  void send_to_all(Exchange& x) {
    const auto me = static_cast<std::size_t>(x.rank());
    const auto count = sums_.sums().size();
    const auto bytes = encode_block(x, 0, count, outgoing_, 0);
    const std::uint64_t mine[] = {count, received_, bytes};
    all_words_.resize(ranks_ * 3);
    x.allgather("counts", std::span<const std::uint64_t>(mine), std::span(all_words_));
    std::uint64_t total = 0, most = 0, total_received = 0, most_received = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const auto words = std::span(all_words_).subspan(rank * 3, 3);
      owned_[rank] = words[0];
      if (owned_[rank] > regions_[rank + 1] - regions_[rank])
        throw Error(Errc::invalid_argument,
                    fmt::format("oktopk: rank {} has {} items of a region of {}", rank,
                                owned_[rank], regions_[rank + 1] - regions_[rank]),
                    {.peer = static_cast<int>(rank)});
      sizes_[rank] = checked_bytes(words[2], most_item_bytes(words[0]), static_cast<int>(rank));
      total += words[0];
      most = std::max(most, words[0]);
      total_received += words[1];
      most_received = std::max(most_received, words[1]);
    }
    x.report.items = total;
    age_ = (age_ + 1) % period_;
    const auto times_share = [&](std::uint64_t one, std::uint64_t all) {
      return static_cast<double>(one * ranks_) /
             static_cast<double>(std::max<std::uint64_t>(all, 1));
    };
    if (times_share(most_received, total_received) > kSkewed) age_ = 0;
    balanced_ = times_share(most, total) > balance_over_ && total >= ranks_;
    if (balanced_) balance(x, total);
    const auto& block = balanced_ ? block_ : outgoing_;
    x.allgatherv("gather", block.first(sizes_[me]), incoming_.room(sum_of(sizes_)), sizes_);
  }

  /// Items [begin, end) of mine, written at `offset`; gaps count from the region's beginning.
  std::size_t encode_block(Exchange& x, std::size_t begin, std::size_t end, ByteBuffer& into,
                           std::size_t offset) {
    const auto timed = x.time(Part::encode);
    const auto [indices, sums] = sums_.items();
    auto* to = into.with_room(most_item_bytes(sums.size()) + ranks_ * most_item_bytes(1)) + offset;
    return encode_items(indices.subspan(begin, end - begin), sums.subspan(begin, end - begin),
                        static_cast<std::uint32_t>(regions_[static_cast<std::size_t>(x.rank())]),
                        to);
  }

  // Item number `rank` / ranks of all: block `rank` begins there.
  [[nodiscard]] std::uint64_t block_begin(std::uint64_t total, std::size_t rank) const {
    return total / ranks_ * rank + std::min<std::uint64_t>(rank, total % ranks_);
  }

  // All items in order of index are one sequence; rank i gets the i-th of equal blocks.
  void balance(Exchange& x, std::uint64_t total) {
    const auto me = static_cast<std::size_t>(x.rank());
    const auto first = std::accumulate(owned_.begin(), owned_.begin() + x.rank(), std::uint64_t{0});
    std::size_t offset = 0;
    for (std::size_t to = 0; to < ranks_; ++to) {
      const auto begin = std::clamp(block_begin(total, to), first, first + owned_[me]) - first;
      const auto end = std::clamp(block_begin(total, to + 1), first, first + owned_[me]) - first;
      words_[to] = begin == end ? 0 : encode_block(x, begin, end, outgoing_, offset);
      offset += words_[to];
    }
    all_words_.resize(ranks_);
    x.alltoall("counts", std::span<const std::uint64_t>(words_), std::span(all_words_));
    sizes_.assign(words_.begin(), words_.end());
    std::uint64_t most = 0;  // of a block: a message of each owner
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const auto message = most_item_bytes(owned_[rank]);
      their_sizes_[rank] = checked_bytes(all_words_[rank], message, static_cast<int>(rank));
      most += message;
    }
    const std::uint64_t mine = sum_of(their_sizes_);
    x.alltoallv("balance", outgoing_.first(sum_of(sizes_)), sizes_, block_.room(mine), their_sizes_,
                likely_bytes());
    x.allgather("counts", std::span(&mine, 1), std::span(all_words_));
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      sizes_[rank] = checked_bytes(all_words_[rank], most, static_cast<int>(rank));
  }

  // Writes the result, and takes out of the feedback what of it was ours.
  void finish(Exchange& x, const TopK::Chosen& chosen) {
    const auto timed = x.time(Part::decode);
    const auto items = static_cast<std::size_t>(x.report.items);
    indices_.grow(items);
    values_.grow(items);
    std::size_t count = 0;
    const auto me = static_cast<std::size_t>(x.rank());
    for_each_message([&](ItemReader& message, std::size_t block) {
      if (message.items() > items - count)
        throw Error(Errc::invalid_argument, "oktopk: owners sent more items than they announced");
      if (count > 0 && message.index() <= indices_.data()[count - 1])
        throw Error(Errc::invalid_argument, "oktopk: owners sent items that do not ascend");
      if (block == me && !balanced_) {
        const auto mine = sums_.items();
        std::copy(mine.indices.begin(), mine.indices.end(), indices_.data() + count);
        std::copy(mine.values.begin(), mine.values.end(), values_.data() + count);
      } else {
        message.read_rest(indices_.data() + count, values_.data() + count);
      }
      count += message.items();
    });
    const std::span<const std::uint32_t> indices(indices_.data(), count);
    const float divisor = x.divisor();  // asked for once, so that the loop is one of vectors
    const SparseItems result{indices, {values_.data(), count}};
    if (x.far != nullptr) {
      for (float& value : std::span(values_.data(), count)) value /= divisor;
      settle(
          chosen, indices, [&](auto sent) { x.far->take(sent); },
          [&](auto unsent, auto values) {
            x.far->give_back({unsent, values});
          });
      return x.far->commit({result.indices, result.values});
    }
    write_sparse(x.gradient, result, divisor, {chosen.indices, x.feedback.take_by_bits()});
    x.feedback.commit();
  }

  /// What was chosen here and came out is what this rank sent: block by block, what of it is still
  /// to be taken, and what was taken but not sent. Both lists ascend; marks are bytes in the
  /// nearest cache, because a bit would have to wait for the one set before it.
  template <class Take, class GiveBack>
  void settle(const TopK::Chosen& chosen, std::span<const std::uint32_t> result, Take take,
              GiveBack give_back) {
    // Every element is stored, not every one stays.
    sent_.resize(kMarks + 1);
    unsent_.resize(kMarks + 1);
    unsent_values_.resize(kMarks + 1);
    const auto [indices, values, finite, taken] = chosen;
    // Copies: for all the compiler knows, storing a mark could change where the others lie.
    auto* const marks = marks_.data();
    auto* const to_take = sent_.data();
    auto* const to_return = unsent_.data();
    auto* const values_to_return = unsent_values_.data();
    const auto* const all = indices.data();
    const auto* const all_values = values.data();
    const auto count = indices.size();
    std::size_t c = 0, r = 0;
    while (c < count) {
      const auto begin = all[c];
      const auto mark = next_mark();
      while (r < result.size() && result[r] < begin) ++r;
      for (; r < result.size() && result[r] - begin < kMarks; ++r) marks[result[r] - begin] = mark;
      std::size_t sent = 0, unsent = 0;
      for (; c < count && all[c] - begin < kMarks; ++c) {
        const bool is_sent = marks[all[c] - begin] == mark;
        const bool is_taken = magnitude(all_values[c]) >= taken;
        to_take[sent] = to_return[unsent] = all[c];
        values_to_return[unsent] = all_values[c];
        sent += static_cast<std::size_t>(is_sent > is_taken);
        unsent += static_cast<std::size_t>(is_taken > is_sent);
      }
      take(std::span<const std::uint32_t>(sent_).first(sent));
      give_back(std::span<const std::uint32_t>(unsent_).first(unsent),
                std::span<const float>(unsent_values_).first(unsent));
    }
  }

  // Every block has a mark of its own, so that those of earlier blocks may stay.
  std::uint8_t next_mark() noexcept {
    if (++mark_ == 0) {
      marks_.fill(0);
      mark_ = 1;
    }
    return mark_;
  }

  // Messages come in the order of owners; a balanced block may hold those of several, and one
  // owner's may lie in several blocks.
  template <class Visit>
  void for_each_message(Visit visit) {
    const auto* at = incoming_.data();
    std::size_t owner = 0;
    std::uint64_t left = owned_[0];
    for (std::size_t block = 0; block < ranks_; at += sizes_[block++]) {
      for (std::span rest(at, sizes_[block]); !rest.empty();) {
        while (balanced_ && left == 0 && owner + 1 < ranks_) left = owned_[++owner];
        const auto whose = balanced_ ? owner : block;
        ItemReader reader(rest, regions_[whose], regions_[whose + 1], static_cast<int>(block),
                          balanced_);
        left -= std::min<std::uint64_t>(left, reader.items());
        visit(reader, block);
        rest = balanced_ ? reader.rest() : std::span<const std::byte>();
      }
    }
  }

  std::uint64_t elements_, target_;
  std::size_t ranks_;
  std::uint64_t period_;  // steps between two cuts of the regions
  double balance_over_;
  std::uint64_t age_ = 0;  // steps since the last cut; 0: cut now
  std::vector<std::uint64_t> regions_;

  TopK top_;
  OwnerSum sums_;  // of my region
  GlobalThreshold threshold_;
  ByteBuffer outgoing_, incoming_, block_;
  LargeBuffer<std::uint32_t> indices_;  // of the result
  LargeBuffer<float> values_;
  std::array<std::uint8_t, kMarks> marks_{};  // `mark_`: in the result, and in the current block
  std::uint8_t mark_ = 0;
  std::vector<std::uint32_t> sent_, unsent_;
  std::vector<float> unsent_values_;
  SparseItems mine_;            // of my own elements those in my region
  std::uint64_t received_ = 0;  // items
  bool balanced_ = false;
  std::vector<std::uint64_t> words_, all_words_, owned_;
  std::vector<std::size_t> sizes_, their_sizes_;
  std::vector<ItemReader> lists_;
};

}  // namespace

std::unique_ptr<Scheme> make_oktopk(const SchemeSetup& setup) {
  return std::make_unique<OkTopk>(setup);
}

}  // namespace sinew
