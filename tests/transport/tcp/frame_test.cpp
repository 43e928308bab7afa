// Frames say exactly what was put in, and bytes that are no frame are refused with the reason.
#include <gtest/gtest.h>

#include <random>

#include "transport/wire/control.hpp"
#include "transport/wire/frame.hpp"

namespace sinew::wire {
namespace {

Frame sample() {
  Frame frame;
  frame.kind = Kind::data;
  frame.summed = true;
  frame.channel = 2;
  frame.epoch = 7;
  frame.source = 3;
  frame.sequence = 412;
  frame.fingerprint = 0xDEADBEEF;
  frame.pass = 5;
  frame.offset = 65536;
  frame.total = 1'000'000'000'000;
  frame.length = 4096;
  frame.payload_sum = 0x0123456789ABCDEF;
  return frame;
}

// Changes a header and makes it whole again: what a peer with other ideas would send.
Header with(std::size_t at, std::uint8_t value) {
  auto header = encode(sample());
  header[at] = std::byte{value};
  const auto sum = header_sum(header);
  for (std::size_t i = 0; i < 4; ++i) header[60 + i] = static_cast<std::byte>(sum >> (8 * i));
  return header;
}

Refusal refusal_of(const Header& header) {
  Frame frame;
  return decode(header, frame);
}

TEST(Frame, comes_back_as_it_went) {
  for (std::uint8_t kind = 0; kind < kKinds; ++kind)
    for (const bool summed : {false, true}) {
      auto frame = sample();
      frame.kind = static_cast<Kind>(kind);
      frame.summed = summed;
      Frame back;
      ASSERT_EQ(decode(encode(frame), back), Refusal::none);
      EXPECT_EQ(back, frame);
    }
}

// The layout is a promise to other machines and later versions.
TEST(Frame, lies_on_the_wire_as_documented) {
  const auto header = encode(sample());
  const std::uint8_t begin[] = {'S', 'N', 'W', '1', 1, 0, 1,    0, 7, 0, 0,    0,    3,    0,
                                0,   0,   2,   0,   0, 0, 0x9C, 1, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE,
                                5,   0,   0,   0,   0, 0, 1,    0, 0, 0, 0,    0};
  for (std::size_t i = 0; i < std::size(begin); ++i)
    EXPECT_EQ(static_cast<std::uint8_t>(header[i]), begin[i]) << "byte " << i;
  EXPECT_EQ(static_cast<std::uint8_t>(header[57]), 0x10);  // length 4096
}

TEST(Frame, that_is_none_is_refused_with_the_reason) {
  EXPECT_EQ(refusal_of(with(0, 'G')), Refusal::magic);
  EXPECT_EQ(refusal_of(with(4, 2)), Refusal::version);
  EXPECT_EQ(refusal_of(with(5, kKinds)), Refusal::kind);
  EXPECT_EQ(refusal_of(with(7, 0x80)), Refusal::flags);
  EXPECT_EQ(refusal_of(with(18, 1)), Refusal::flags);
  EXPECT_EQ(refusal_of(with(58, 4)), Refusal::length);     // 256 KiB and 4096 bytes
  EXPECT_EQ(refusal_of(with(59, 0x80)), Refusal::length);  // 2 GiB
  EXPECT_EQ(refusal_of(with(39, 0x80)), Refusal::beyond_total);
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(Refusal::beyond_total); ++i)
    EXPECT_NE(name(static_cast<Refusal>(i)), "unknown");
}

TEST(Frame, with_any_flipped_bit_is_refused) {
  const auto good = encode(sample());
  for (std::size_t bit = 0; bit < 8 * kHeaderBytes; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(refusal_of(bad), Refusal::none) << "bit " << bit;
  }
}

TEST(Frame, of_random_bytes_is_never_taken_for_one_and_never_harms) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    Header header;
    for (auto& byte : header) byte = static_cast<std::byte>(random());
    if (i % 2 == 0) std::copy_n(encode(sample()).begin(), 6, header.begin());
    Frame frame = sample();
    ASSERT_NE(decode(header, frame), Refusal::none);
    ASSERT_EQ(frame, sample());  // untouched
  }
}

bool is_history(std::span<const std::byte> bytes) {
  History history;
  return decode_history(bytes, history);
}

TEST(History, comes_back_as_it_went_and_nonsense_does_not) {
  History history;
  for (std::uint32_t i = 1; i <= kHistory; ++i)
    history.entries[history.count++] = {
        {i, i * 77},
        {Collective::gather, DType::bf16, ReduceOp::bxor, static_cast<int>(i) - 5,
         std::uint64_t{1} << 40, 0x1234567890ABCDEF, i}};
  const auto encoded = encode_history(history);
  History back;
  ASSERT_TRUE(decode_history(encoded.get(), back));
  EXPECT_EQ(back.count, history.count);
  EXPECT_EQ(back.entries, history.entries);
  EXPECT_TRUE(is_history({}));
  EXPECT_FALSE(is_history(encoded.get().first(encoded.size - 1)));
  for (const std::size_t at : {8UL, 9UL, 10UL}) {  // no such collective, type, operation
    auto bad = encoded;
    bad.bytes[at] = std::byte{200};
    EXPECT_FALSE(is_history(bad.get())) << at;
  }
  const std::vector<std::byte> long_one(encoded.size * 2);
  EXPECT_FALSE(is_history(long_one));
}

TEST(Failures, come_back_as_they_went_but_for_what_is_too_long) {
  const Failure failure{Errc::mismatch, -1, "rank 3 called something else"};
  const auto back = decode_failure(encode_failure(failure));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->code, failure.code);
  EXPECT_EQ(back->peer, failure.peer);
  EXPECT_EQ(back->why, failure.why);
  const auto cut = encode_failure({Errc::system, 1, std::string(100'000, 'x')});
  EXPECT_LE(cut.size(), kMostControl);
  EXPECT_TRUE(decode_failure(cut));
  EXPECT_FALSE(decode_failure({}));
  auto bad = encode_failure(failure);
  bad[0] = std::byte{99};
  EXPECT_FALSE(decode_failure(bad));
}

}  // namespace
}  // namespace sinew::wire
