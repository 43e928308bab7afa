// Lossless compression: what comes out is what went in, it pays or it is left, and forged bytes
// reach nothing.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include <sinew/error.hpp>
#include <sinew/lossless.hpp>
#include "codec/benefit.hpp"
#include "support/gradients.hpp"

namespace sinew {
namespace {

using Bytes = std::vector<std::byte>;

Bytes noise(std::size_t size, unsigned seed = 1) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random() >> 11);
  return bytes;
}

Bytes text(std::size_t size) {
  constexpr std::string_view kPhrase = "one rank sends, another receives; ";
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(kPhrase[(i + i / 1000) % kPhrase.size()]);
  return bytes;
}

Bytes packed(LosslessEncoder& encoder, const Bytes& data) {
  Bytes all;
  for (const auto piece : encoder.encode(data)) all.insert(all.end(), piece.begin(), piece.end());
  EXPECT_EQ(all.size(), encoder.report().packed_bytes);
  return all;
}

Bytes packed(const LosslessOptions& options, const Bytes& data) {
  LosslessEncoder encoder(options);
  return packed(encoder, data);
}

Bytes unpacked(const Bytes& bytes) {
  Bytes data(unpacked_bytes(bytes));
  unpack(bytes, data);
  return data;
}

TEST(Lossless, what_comes_out_is_what_went_in) {
  for (const auto codec : kCodecs)
    for (const std::uint32_t shuffle : {1U, 2U, 4U, 7U})
      for (const std::size_t size : {0U, 1U, 63U, 64U, 65U, 4095U, 4096U, 100000U, 300001U}) {
        const LosslessOptions options{
            .codec = codec, .shuffle = shuffle, .block_bytes = 16384, .min_bytes = 0};
        for (const auto& data : {noise(size), text(size), Bytes(size)})
          EXPECT_EQ(unpacked(packed(options, data)), data) << name(codec) << " " << size;
      }
}

TEST(Lossless, every_level_works) {
  const auto data = text(50000);
  const auto check = [&](Codec codec, std::initializer_list<int> all) {
    for (const int level : all) {
      const auto bytes = packed({.codec = codec, .level = level}, data);
      EXPECT_LT(bytes.size(), data.size() / 5) << name(codec) << " " << level;
      EXPECT_EQ(unpacked(bytes), data);
    }
  };
  check(Codec::lz4, {1, 8, 64});
  check(Codec::lz4_frame, {0, 1, 9, 12});
  check(Codec::zstd, {-7, -1, 1, 3, 19});
  check(Codec::zlib, {1, 6, 9});
}

// Floats have no bytes in common as they lie; side by side the equal ones are found.
TEST(Lossless, shuffle_finds_what_floats_have_in_common) {
  auto values = test::gradient(100000, 0, 1);
  const auto packed_with = [&](Codec codec, std::uint32_t shuffle) {
    Bytes data(values.size() * sizeof(float));
    std::memcpy(data.data(), values.data(), data.size());
    return packed({.codec = codec, .shuffle = shuffle}, data).size();
  };
  EXPECT_LT(packed_with(Codec::zstd, 4), packed_with(Codec::zstd, 1));  // exponents
  for (float& value : values) value = to_float(to_bf16(value));         // and empty halves
  EXPECT_LT(packed_with(Codec::lz4, 4) * 5, packed_with(Codec::lz4, 1) * 4);
}

TEST(Lossless, what_does_not_get_shorter_costs_almost_no_bytes_and_is_not_copied) {
  const auto data = noise(1 << 20);
  for (const auto codec : {Codec::lz4, Codec::zstd, Codec::zlib, Codec::lz4_frame}) {
    LosslessEncoder encoder({.codec = codec});
    const auto pieces = encoder.encode(data);
    EXPECT_LE(encoder.report().packed_bytes, data.size() + 24 + 4 * 4) << name(codec);
    ASSERT_EQ(pieces.size(), 2U) << name(codec);  // the head, and all of the data
    EXPECT_EQ(pieces[1].data(), data.data());
    EXPECT_EQ(pieces[1].size(), data.size());
  }
}

TEST(Lossless, what_was_left_as_it_was_can_be_read_in_place) {
  const auto data = noise(100001);
  const auto bytes = packed({.block_bytes = 4096}, data);
  const auto view = plain_view(bytes);
  ASSERT_TRUE(view.has_value());
  EXPECT_TRUE(std::equal(view->begin(), view->end(), data.begin(), data.end()));
  EXPECT_GE(view->data(), bytes.data());
  EXPECT_FALSE(plain_view(packed({}, text(100000))).has_value());
  for (std::size_t size = 0; size < bytes.size(); size += 97)
    EXPECT_THROW(plain_view(std::span(bytes).first(size)), Error) << size;
  auto forged = bytes;
  const std::uint64_t vast = ~std::uint64_t{0};
  std::memcpy(&forged[16], &vast, sizeof vast);
  EXPECT_THROW(plain_view(forged), Error);
}

TEST(Lossless, short_data_is_left_as_it_is) {
  LosslessEncoder encoder({.min_bytes = 10000});
  encoder.encode(text(9999));
  EXPECT_EQ(encoder.report().tried_bytes, 0U);
  encoder.encode(text(10000));
  EXPECT_EQ(encoder.report().compressed_blocks, 1U);
}

// A clock that passes a microsecond whenever somebody looks.
std::uint64_t microsecond_a_look() {
  thread_local std::uint64_t now = 0;
  return now += 1000;
}

// 256 KiB of text save 250 KiB; a block takes a microsecond, and its decoding another at most.
TEST(Lossless, a_block_is_compressed_only_where_it_saves_time) {
  const auto data = text(8 << 20);
  const auto compressed = [&](double rate) {
    LosslessEncoder encoder({.link_bytes_per_second = rate}, microsecond_a_look);
    EXPECT_EQ(unpacked(packed(encoder, data)), data);
    return encoder.report().compressed_blocks;
  };
  EXPECT_EQ(compressed(1e9), 32U);  // 250 us saved for 2
  EXPECT_EQ(compressed(1e13), 0U);  // 0.025 us
  EXPECT_EQ(compressed(0), 32U);    // time does not count
}

TEST(Lossless, incompressible_data_is_hardly_tried) {
  const auto data = noise(32 << 20);
  LosslessEncoder encoder({.link_bytes_per_second = 1e9}, microsecond_a_look);
  encoder.encode(data);
  EXPECT_EQ(encoder.report().compressed_blocks, 0U);
  EXPECT_LT(encoder.report().tried_bytes, data.size() / 1000);
  EXPECT_LT(encoder.report().packed_bytes, data.size() + data.size() / 1000);
}

TEST(Lossless, data_that_becomes_compressible_is_found_again) {
  LosslessEncoder encoder({.link_bytes_per_second = 1e9}, microsecond_a_look);
  encoder.encode(noise(8 << 20));
  const auto good = text(8 << 20);
  for (int i = 0; i < 8; ++i) encoder.encode(good);
  EXPECT_EQ(encoder.report().compressed_blocks, encoder.report().blocks);
  encoder.encode(noise(8 << 20));
  EXPECT_LE(encoder.report().tried_bytes, 600U << 10);  // two blocks and some samples
}

TEST(Benefit, counts_both_ends) {
  // At 1 GB/s a byte takes a nanosecond: 1,000 saved bytes are worth 1,000 ns.
  const auto pays = [](std::uint64_t encode_ns, std::uint64_t decode_ns) {
    Benefit benefit(1e9);
    return benefit.next() == Benefit::Advice::sample &&
           benefit.sampled({2000, 1000, encode_ns, decode_ns});
  };
  EXPECT_TRUE(pays(600, 300));
  EXPECT_FALSE(pays(600, 500));
  EXPECT_FALSE(pays(1100, 0));
}

TEST(Benefit, one_slow_block_is_an_accident_and_two_are_not) {
  Benefit benefit(1e9);
  EXPECT_TRUE(benefit.sampled({2000, 1000, 100, 50}));
  benefit.compressed({2000, 1000, 5000});
  EXPECT_EQ(benefit.next(), Benefit::Advice::compress);
  benefit.compressed({2000, 1000, 100});
  benefit.compressed({2000, 1000, 5000});
  EXPECT_EQ(benefit.next(), Benefit::Advice::compress);
  benefit.compressed({2000, 1000, 5000});
  EXPECT_EQ(benefit.next(), Benefit::Advice::leave);
}

std::string complaint(const Bytes& bytes, std::size_t expected) {
  Bytes into(expected);
  try {
    unpack(bytes, into);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void put(Bytes& bytes, std::size_t at, std::uint64_t value, std::size_t width) {
  std::memcpy(bytes.data() + at, &value, width);
}

TEST(Lossless, forged_lengths_are_refused_before_anything_is_made_of_them) {
  const auto good = packed({.block_bytes = 4096}, text(10000));
  EXPECT_EQ(complaint(good, 10000), "");
  EXPECT_NE(complaint(good, 9999), "");
  auto bomb = good;
  put(bomb, 16, std::uint64_t{1} << 60, 8);  // says an exabyte
  EXPECT_EQ(unpacked_bytes(bomb), std::uint64_t{1} << 60);
  EXPECT_NE(complaint(bomb, 10000).find("are expected"), std::string::npos);
  bomb = good;
  put(bomb, 8, 1, 4);  // ten thousand blocks of a byte
  EXPECT_NE(complaint(bomb, 10000).find("blocks are announced"), std::string::npos);
  bomb = good;
  put(bomb, 24, 0x7FFFFFFF, 4);
  EXPECT_NE(complaint(bomb, 10000).find("are left"), std::string::npos);
  bomb = good;
  put(bomb, 4, 9, 1);
  EXPECT_NE(complaint(bomb, 10000).find("version 9"), std::string::npos);
}

// A block that would unpack to more than its room stops at the room.
TEST(Lossless, a_bomb_does_not_outgrow_its_room) {
  for (const auto codec : {Codec::lz4, Codec::lz4_frame, Codec::zstd, Codec::zlib}) {
    auto bytes = packed({.codec = codec, .block_bytes = 1 << 20}, Bytes(1 << 20));
    EXPECT_LT(bytes.size(), 10000U);
    put(bytes, 16, 1000, 8);
    EXPECT_NE(complaint(bytes, 1000), "") << name(codec);
  }
}

TEST(Lossless, every_truncation_is_refused_and_no_flip_reaches_outside) {
  std::mt19937 random(3);
  for (const auto codec : kCodecs) {
    const auto good =
        packed({.codec = codec, .shuffle = 2, .block_bytes = 512, .min_bytes = 0}, text(2000));
    for (std::size_t size = 0; size < good.size(); ++size)
      EXPECT_NE(
          complaint(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), 2000),
          "")
          << name(codec) << " " << size;
    for (int trial = 0; trial < 3000; ++trial) {
      auto bytes = good;
      for (int flips = 0; flips < 3; ++flips)
        bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << random() % 8);
      complaint(bytes, 2000);  // must come back, whatever it says; sanitizers watch the rest
    }
  }
}

TEST(Lossless, options_out_of_range_say_what_is_possible) {
  const auto refusal = [](const LosslessOptions& options) -> std::string {
    try {
      LosslessEncoder encoder(options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({.codec = Codec::zlib, .level = 10}), "level 10 of zlib; it has 1 to 9");
  EXPECT_NE(refusal({.shuffle = 0}), "");
  EXPECT_NE(refusal({.block_bytes = 1}), "");
  EXPECT_NE(refusal({.link_bytes_per_second = -1}), "");
  EXPECT_THROW(parse_codec("lz5"), Error);
  EXPECT_EQ(parse_codec("zstd"), Codec::zstd);
}

}  // namespace
}  // namespace sinew
