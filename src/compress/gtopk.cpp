// gTopk: up a tree, each rank adds its child's k items to its own and passes on the k largest; the
// root's k items go back down. On the way down every rank learns which of its items are in the
// result (provenance): what was cut at a merge stays with whoever had sent it.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <sinew/error.hpp>
#include "compress/items.hpp"
#include "compress/schemes.hpp"
#include "kernel/top_k.hpp"

namespace sinew {
namespace {

struct Items {
  std::vector<std::uint32_t> indices;  // ascending
  std::vector<float> values;
  void clear() {
    indices.clear();
    values.clear();
  }
  void add(std::uint32_t index, float value) {
    indices.push_back(index);
    values.push_back(value);
  }
};

/// The k items of largest magnitude stay, ties by lowest index.
void keep_largest(Items& items, std::size_t k) {
  if (items.values.size() <= k) return;
  const auto [least, larger] = kth_magnitude(items.values, k);
  auto ties = k - larger;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < items.values.size(); ++i) {
    const auto m = magnitude(items.values[i]);
    if (m < least || (m == least && ties == 0)) continue;
    ties -= m == least ? 1 : 0;
    items.indices[kept] = items.indices[i];
    items.values[kept++] = items.values[i];
  }
  items.indices.resize(kept);
  items.values.resize(kept);
}

Items merged(const Items& a, const Items& b) {
  Items sum;
  std::size_t i = 0, j = 0;
  while (i < a.indices.size() || j < b.indices.size()) {
    const bool of_a =
        j == b.indices.size() || (i < a.indices.size() && a.indices[i] <= b.indices[j]);
    const bool of_b =
        i == a.indices.size() || (j < b.indices.size() && b.indices[j] <= a.indices[i]);
    const auto index = of_a ? a.indices[i] : b.indices[j];
    sum.add(index, of_a && of_b ? a.values[i] + b.values[j] : of_a ? a.values[i] : b.values[j]);
    i += of_a ? 1 : 0;
    j += of_b ? 1 : 0;
  }
  return sum;
}

// in[i] stays true only where the result's item i is one of `indices`.
void keep_where_present(std::span<const std::uint32_t> result,
                        std::span<const std::uint32_t> indices, std::vector<bool>& in) {
  auto at = indices.begin();
  for (std::size_t i = 0; i < result.size(); ++i) {
    at = std::lower_bound(at, indices.end(), result[i]);
    in[i] = in[i] && at != indices.end() && *at == result[i];
  }
}

class GTopk final : public Scheme {
 public:
  explicit GTopk(const SchemeSetup& setup)
      : elements_(setup.elements),
        target_(setup.target_items),
        top_(setup.elements, setup.target_items) {
    auto bit = 1;
    for (; bit < setup.size && (setup.rank & bit) == 0; bit <<= 1)
      if (setup.rank + bit < setup.size) children_.push_back(setup.rank + bit);
    if (setup.rank != 0) parent_ = setup.rank - bit;
    mine_.resize(children_.size() + 1);
    theirs_.resize(children_.size());
  }

  Outcome exchange(Exchange& x) override {
    bool finite = choose(x);
    finite = collect(x, finite);
    finite = learn_result(x, finite);
    if (!finite) return Outcome::non_finite;
    finish(x);
    return Outcome::done;
  }

 private:
  bool choose(Exchange& x) {
    const auto timed = x.time(Part::accumulate_select);
    const auto [kept, gone, sum] = x.feedback.begin();
    const auto chosen = top_.accumulate(x.gradient, {kept, gone}, sum);
    mine_[0].indices.assign(chosen.indices.begin(), chosen.indices.end());
    mine_[0].values.assign(chosen.values.begin(), chosen.values.end());
    x.report.local_items = chosen.indices.size();
    return chosen.finite;
  }

  // mine_[j]: what is here after the j-th child.
  bool collect(Exchange& x, bool finite) {
    for (std::size_t j = 0; j < children_.size(); ++j) {
      finite = receive(x, "up", children_[j]) && finite;
      const auto timed = x.time(Part::reduce);
      read_items(theirs_[j], children_[j]);
      mine_[j + 1] = merged(mine_[j], theirs_[j]);
      keep_largest(mine_[j + 1], target_);
    }
    if (parent_ >= 0) {
      write_items(x, mine_.back());
      send(x, "up", parent_, finite);
    }
    return finite;
  }

  // in_[i]: whether the result's item i has what was here in the end. Each child gets the same for
  // what it sent; what remains at last is true for this rank's own items.
  bool learn_result(Exchange& x, bool finite) {
    if (parent_ < 0) {
      result_ = mine_.back();
      in_.assign(result_.indices.size(), true);
    } else {
      finite = receive(x, "down", parent_);
      read_bits(read_items(result_, parent_));
    }
    for (auto j = children_.size(); j-- > 0;) {
      auto in_child = in_;
      keep_where_present(result_.indices, theirs_[j].indices, in_child);
      write_items(x, result_);
      write_bits(in_child);
      send(x, "down", children_[j], finite);
      keep_where_present(result_.indices, mine_[j].indices, in_);
    }
    return finite;
  }

  void finish(Exchange& x) {
    const auto timed = x.time(Part::decode);
    std::fill(x.gradient.begin(), x.gradient.end(), 0.0F);
    const float divisor = x.divisor();
    sent_.clear();
    for (std::size_t i = 0; i < result_.indices.size(); ++i) {
      x.gradient[result_.indices[i]] = result_.values[i] / divisor;
      if (in_[i]) sent_.push_back(result_.indices[i]);
    }
    x.report.items = result_.indices.size();
    x.feedback.take(sent_);
    x.feedback.commit();
  }

  // A message is its length and whether all is finite in one word, then the items, and on the way
  // down a bit for each.
  void send(Exchange& x, std::string_view phase, int to, bool finite) {
    const std::uint64_t word = bytes_.size() << 1 | (finite ? 0 : 1);
    x.send(phase, std::as_bytes(std::span(&word, 1)), to);
    x.send(phase, bytes_, to);
  }
  bool receive(Exchange& x, std::string_view phase, int from) {
    std::uint64_t word = 0;
    x.recv(phase, std::as_writable_bytes(std::span(&word, 1)), from);
    const auto most = most_item_bytes(target_) + target_ / 8 + 1;
    if (word >> 1 > most)
      throw Error(Errc::invalid_argument,
                  fmt::format("gtopk: rank {} announces {} bytes; {} items take at most {}", from,
                              word >> 1, target_, most),
                  {.rank = x.rank(), .peer = from});
    bytes_.resize(word >> 1);
    x.recv(phase, bytes_, from);
    return (word & 1) == 0;
  }
  void write_items(Exchange& x, const Items& items) {
    const auto timed = x.time(Part::encode);
    bytes_.resize(most_item_bytes(items.indices.size()));
    bytes_.resize(encode_items(items.indices, items.values, 0, bytes_.data()));
  }
  std::span<const std::byte> read_items(Items& items, int from) {
    items.clear();
    ItemReader reader(bytes_, 0, elements_, from, true);
    for (; !reader.at_end(); reader.advance())
      items.add(static_cast<std::uint32_t>(reader.index()), reader.value());
    return reader.rest();
  }
  void write_bits(const std::vector<bool>& bits) {
    const auto begin = bytes_.size();
    bytes_.resize(begin + (bits.size() + 7) / 8);
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i]) bytes_[begin + i / 8] |= std::byte{1} << i % 8;
  }
  void read_bits(std::span<const std::byte> bytes) {
    if (bytes.size() != (result_.indices.size() + 7) / 8)
      throw Error(Errc::invalid_argument,
                  fmt::format("gtopk: rank {} sent {} bytes of provenance for {} items", parent_,
                              bytes.size(), result_.indices.size()),
                  {.peer = parent_});
    in_.resize(result_.indices.size());
    for (std::size_t i = 0; i < in_.size(); ++i)
      in_[i] = (bytes[i / 8] >> i % 8 & std::byte{1}) != std::byte{};
  }

  std::size_t elements_, target_;
  TopK top_;
  int parent_ = -1;
  std::vector<int> children_;
  std::vector<Items> mine_, theirs_;
  Items result_;
  std::vector<bool> in_;
  std::vector<std::uint32_t> sent_;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::unique_ptr<Scheme> make_gtopk(const SchemeSetup& setup) {
  return std::make_unique<GTopk>(setup);
}

}  // namespace sinew
