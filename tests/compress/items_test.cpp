// Sparse items on the wire: what is written is read back, and nothing else is believed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <string>
#include <vector>

#include <sinew/error.hpp>
#include "compress/items.hpp"

namespace sinew {
namespace {

struct Items {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
  // Bit for bit: forged values may be NaN.
  friend bool operator==(const Items& a, const Items& b) {
    return a.indices == b.indices &&
           std::ranges::equal(a.values, b.values, {}, std::bit_cast<std::uint32_t, float>,
                              std::bit_cast<std::uint32_t, float>);
  }
};

std::vector<std::byte> encoded(const Items& items, std::uint32_t base) {
  std::vector<std::byte> bytes(most_item_bytes(items.indices.size()));
  bytes.resize(encode_items(items.indices, items.values, base, bytes.data()));
  return bytes;
}

Items one_by_one(ItemReader reader) {
  Items items;
  for (; !reader.at_end(); reader.advance()) {
    items.indices.push_back(static_cast<std::uint32_t>(reader.index()));
    items.values.push_back(reader.value());
  }
  return items;
}

Items at_once(ItemReader reader) {
  Items items{std::vector<std::uint32_t>(reader.items()), std::vector<float>(reader.items())};
  reader.read_rest(items.indices.data(), items.values.data());
  EXPECT_TRUE(reader.at_end());
  return items;
}

std::string refusal(Items (*read)(ItemReader), const ItemReader& reader) {
  try {
    read(reader);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Both ways find the same, or refuse with the same words.
Items decoded(std::span<const std::byte> bytes, std::uint32_t base, std::uint32_t limit) {
  const ItemReader reader(bytes, base, limit, 3);
  EXPECT_EQ(refusal(at_once, reader), refusal(one_by_one, reader));
  auto items = one_by_one(reader);
  EXPECT_EQ(at_once(reader), items);
  return items;
}

TEST(Items, come_back_as_they_were) {
  std::mt19937 random(5);
  for (const std::uint32_t spread : {1U, 50U, 127U, 128U, 129U, 20000U, 3000000U, 100000000U}) {
    Items items;
    std::uint64_t index = 1000;
    while (items.indices.size() < 500 && index < 0xFFFFFFFF) {
      items.indices.push_back(static_cast<std::uint32_t>(index));
      items.values.push_back(static_cast<float>(items.indices.size()) - 250.5F);
      index += 1 + random() % spread;
    }
    EXPECT_EQ(decoded(encoded(items, 1000), 1000, 0xFFFFFFFF), items) << spread;
  }
  EXPECT_EQ(decoded(encoded({}, 7), 7, 7), Items{});
}

TEST(Items, take_five_bytes_where_gaps_are_short) {
  Items items;
  for (std::uint32_t i = 0; i < 1000; ++i)
    items.indices.push_back(i * 50), items.values.push_back(1);
  EXPECT_EQ(encoded(items, 0).size(), 4 + 5 * 1000U);
}

// B2: an index above 2^24 is exact, however wide the region.
TEST(Items, B2_indices_above_2_to_the_24_are_exact) {
  const Items items{{16777217, 16777219, 23600001, 0xFFFFFFFE}, {1, 2, 3, 4}};
  EXPECT_EQ(decoded(encoded(items, 0), 0, 0xFFFFFFFF), items);
}

TEST(Items, every_truncation_and_every_extra_byte_is_refused) {
  const Items items{{3, 200, 70000, 70001}, {1, 2, 3, 4}};
  auto bytes = encoded(items, 0);
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(decoded(std::span(bytes).first(length), 0, 100000), Error) << length;
  bytes.push_back(std::byte{0});
  EXPECT_THROW(decoded(bytes, 0, 100000), Error);
}

TEST(Items, an_index_outside_its_region_is_refused) {
  const Items items{{10, 20, 300}, {1, 2, 3}};
  EXPECT_NO_THROW(decoded(encoded(items, 10), 10, 301));
  EXPECT_THROW(decoded(encoded(items, 10), 10, 300), Error);
  EXPECT_THROW(decoded(encoded(items, 10), 10, 15), Error);
  Items many;
  for (std::uint32_t i = 0; i < 40; ++i) many.indices.push_back(10 + 3 * i);
  many.values.resize(many.indices.size());
  for (std::uint32_t limit = 11; limit <= many.indices.back(); ++limit)
    EXPECT_THROW(decoded(encoded(many, 10), 10, limit), Error) << limit;
  EXPECT_EQ(decoded(encoded(many, 10), 10, many.indices.back() + 1), many);
}

TEST(Items, forged_bytes_never_read_or_write_outside) {
  std::mt19937 random(11);
  Items items;
  for (std::uint32_t i = 0; i < 40; ++i)
    items.indices.push_back(i % 13 == 12 ? 3000 * i : 2990 * i);
  std::sort(items.indices.begin(), items.indices.end());
  for (std::uint32_t i = 20; i < 40; ++i) items.indices[i] = items.indices[19] + (i - 19) * 5;
  items.values.resize(items.indices.size());
  const std::vector<std::byte> good = encoded(items, 0);
  for (int trial = 0; trial < 20000; ++trial) {
    auto bytes = good;
    for (int flips = 0; flips < 3; ++flips)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    try {
      std::uint64_t last = 0;
      for (const auto index : decoded(bytes, 0, 100000).indices) {
        EXPECT_LT(index, 100000U);
        EXPECT_GE(index, last);
        last = index + std::uint64_t{1};
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.context().peer, 3);
    }
  }
}

}  // namespace
}  // namespace sinew
