// Tensor frames: written and read back, in place; and what is forged, cut off or too new is
// refused.
#include <gtest/gtest.h>
#define XXH_INLINE_ALL  // needs no library
#include <xxhash.h>

#include <cstring>
#include <numeric>
#include <random>

#include <sinew/tensor_frame.hpp>
#include "codec/tensor_form.hpp"

namespace sinew {
namespace {

using Bytes = std::vector<std::byte>;

struct Sample {
  std::vector<float> weights = std::vector<float>(600);
  std::vector<std::int64_t> step{12345};
  std::vector<bf16> half = std::vector<bf16>(7, bf16{0x3F80});
  std::uint64_t weights_shape[2] = {20, 30}, half_shape[3] = {7, 1, 1}, empty_shape[2] = {0, 5};
  Sample() { std::iota(weights.begin(), weights.end(), -300.0F); }

  [[nodiscard]] std::vector<TensorView> tensors() const {
    return {{"layer.weights",
             DType::f32,
             weights_shape,
             std::as_bytes(std::span(weights)),
             true,
             {Device::Kind::cuda, 3}},
            {"step", DType::i64, {}, std::as_bytes(std::span(step))},
            {"empty", DType::f64, empty_shape, {}},
            {"", DType::bf16, half_shape, std::as_bytes(std::span(half))}};
  }
};

void expect_same(const TensorFrame& frame, const std::vector<TensorView>& tensors) {
  ASSERT_EQ(frame.tensors().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& got = frame.tensors()[i];
    EXPECT_EQ(got.name, tensors[i].name);
    EXPECT_EQ(got.dtype, tensors[i].dtype);
    EXPECT_TRUE(std::equal(got.shape.begin(), got.shape.end(), tensors[i].shape.begin(),
                           tensors[i].shape.end()));
    EXPECT_EQ(got.requires_grad, tensors[i].requires_grad);
    EXPECT_EQ(got.device, tensors[i].device);
    Bytes data(got.bytes);
    got.copy_to(data);
    EXPECT_EQ(data, Bytes(tensors[i].data.begin(), tensors[i].data.end())) << got.name;
  }
}

// A liar makes his checksums fit.
struct Forgery {
  Bytes bytes;
  void sign() {
    FrameHead head;
    std::memcpy(&head, bytes.data(), sizeof head);
    const auto listed = head.directory_bytes + head.metadata_bytes;
    if (listed <= bytes.size() - sizeof head)
      head.directory_checksum = XXH3_64bits(bytes.data() + sizeof head, listed);
    head.head_checksum = XXH3_64bits(&head, offsetof(FrameHead, head_checksum));
    std::memcpy(bytes.data(), &head, sizeof head);
  }
  template <class T>
  void put(std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
    sign();
  }
  [[nodiscard]] std::string complaint(const TensorFrameLimits& limits = {}) const {
    try {
      const TensorFrame frame(bytes, limits);
      for (const auto& tensor : frame.tensors()) {
        Bytes data(tensor.bytes);
        tensor.copy_to(data);
      }
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST(TensorFrame, comes_back_as_it_was_with_every_codec) {
  const Sample sample;
  for (const auto codec : kCodecs) {
    const auto bytes = write_tensor_frame(sample.tensors(), R"({"epoch": 3})",
                                          {.codec = codec, .shuffle = 4, .min_bytes = 0});
    const TensorFrame frame(bytes);
    expect_same(frame, sample.tensors());
    EXPECT_EQ(frame.metadata(), R"({"epoch": 3})");
  }
  const auto nothing = write_tensor_frame({});
  EXPECT_EQ(nothing.size(), 64U);
  EXPECT_TRUE(TensorFrame(nothing).tensors().empty());
}

TEST(TensorFrame, is_read_in_place) {
  const Sample sample;
  const auto written = write_tensor_frame(sample.tensors());
  // At a multiple of 64, as a mapped file is.
  std::vector<std::byte> room(written.size() + 64);
  auto* const at = room.data() + (64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64) % 64;
  std::memcpy(at, written.data(), written.size());
  const TensorFrame frame(std::span(at, written.size()));
  const auto* weights = frame.find("layer.weights");
  ASSERT_NE(weights, nullptr);
  const auto view = weights->as<float>();
  EXPECT_EQ(std::vector<float>(view.begin(), view.end()), sample.weights);
  EXPECT_GE(reinterpret_cast<const std::byte*>(view.data()), at);
  EXPECT_LT(reinterpret_cast<const std::byte*>(view.data()), at + written.size());
  for (const auto& tensor : frame.tensors())
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.stored.data()) % 64, 0U);
  EXPECT_THROW((void)weights->as<double>(), Error);
  EXPECT_EQ(frame.find("nobody"), nullptr);
  // One byte further no float can live.
  std::memmove(at + 1, at, written.size());
  EXPECT_THROW((void)TensorFrame(std::span(at + 1, written.size())).tensors()[0].as<float>(),
               Error);
}

TEST(TensorFrame, a_compressed_tensor_is_copied_not_viewed) {
  const std::vector<float> zeros(10000);
  const std::uint64_t shape[] = {10000};
  const TensorView tensors[] = {{"z", DType::f32, shape, std::as_bytes(std::span(zeros))}};
  const auto bytes = write_tensor_frame(tensors, {}, {.codec = Codec::zstd, .shuffle = 4});
  EXPECT_LT(bytes.size(), 1000U);
  const TensorFrame frame(bytes);
  EXPECT_EQ(frame.tensors()[0].codec, Codec::zstd);
  EXPECT_THROW((void)frame.tensors()[0].as<float>(), Error);
  Bytes small(100);
  EXPECT_THROW(frame.tensors()[0].copy_to(small), Error);
}

TEST(TensorFrame, every_flipped_bit_and_every_truncation_is_noticed) {
  const Sample sample;
  const auto good = write_tensor_frame(sample.tensors(), R"({"a":[1,2]})");
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_THROW(TensorFrame(std::span(good).first(size)), Error) << size;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_THROW(TensorFrame{bytes}, Error) << bit;
  }
}

TEST(TensorFrame, bytes_after_the_end_are_refused_with_and_without_tensors) {
  const Sample sample;
  for (Forgery longer : {Forgery{write_tensor_frame(sample.tensors())},
                         Forgery{write_tensor_frame({}, R"({"a":1})")}}) {
    ASSERT_EQ(longer.complaint(), "");
    longer.bytes.push_back({});
    EXPECT_NE(longer.complaint(), "");
    longer.put(offsetof(FrameHead, frame_bytes), std::uint64_t{longer.bytes.size()});
    EXPECT_NE(longer.complaint().find("after its end"), std::string::npos) << longer.complaint();
  }
}

Forgery one_tensor() {
  static const std::vector<float> values(100, 1.5F);
  static const std::uint64_t shape[] = {10, 10};
  const TensorView tensors[] = {{"w", DType::f32, shape, std::as_bytes(std::span(values))}};
  return {write_tensor_frame(tensors)};
}

constexpr std::size_t kEntry = sizeof(FrameHead), kShape = kEntry + sizeof(EntryHead);

TEST(TensorFrame, forged_lengths_are_refused_even_with_good_checksums) {
  EXPECT_EQ(one_tensor().complaint(), "");
  const auto refused = [](std::size_t at, auto value, std::string_view why) {
    auto forged = one_tensor();
    forged.put(at, value);
    EXPECT_NE(forged.complaint().find(why), std::string::npos) << forged.complaint();
  };
  refused(offsetof(FrameHead, tensors), 0xFFFFFFFFU, "tensors in a directory of");
  refused(offsetof(FrameHead, directory_bytes), ~std::uint64_t{0}, "a directory of");
  refused(offsetof(FrameHead, metadata_bytes), 0x7FFFFFFFU, "metadata of");
  refused(offsetof(FrameHead, frame_bytes), std::uint64_t{1} << 50, "bytes are there of");
  refused(kEntry + offsetof(EntryHead, dtype), std::uint8_t{200}, "not known");
  refused(kEntry + offsetof(EntryHead, codec), std::uint8_t{5}, "not known");
  refused(kEntry + offsetof(EntryHead, flags), std::uint8_t{2}, "not known");
  refused(kEntry + offsetof(EntryHead, dimensions), std::uint16_t{60000}, "dimensions");
  refused(kEntry + offsetof(EntryHead, name_bytes), 0xFFFFFFF0U, "cut off");
  refused(kEntry + offsetof(EntryHead, offset), std::uint64_t{0}, "its place is");
  refused(kEntry + offsetof(EntryHead, stored_bytes), ~std::uint64_t{0}, "stored plainly");
  refused(kEntry + offsetof(EntryHead, raw_bytes), std::uint64_t{4}, "its shape");
  refused(kShape, std::uint64_t{1} << 62, "more elements than there are addresses");
}

// A tensor that says it is a petabyte is refused by its word, before anybody makes room.
TEST(TensorFrame, a_decompression_bomb_is_refused_by_its_size) {
  const std::vector<float> zeros(1 << 20);
  const std::uint64_t shape[] = {1 << 20};
  const TensorView tensors[] = {{"z", DType::f32, shape, std::as_bytes(std::span(zeros))}};
  Forgery forged{write_tensor_frame(tensors, {}, {.codec = Codec::zstd})};
  EXPECT_NE(forged.complaint({.unpacked_bytes = 1 << 20}).find("at most 1048576"),
            std::string::npos);
  forged.put(kShape, std::uint64_t{1} << 48);
  forged.put(kEntry + offsetof(EntryHead, raw_bytes), std::uint64_t{1} << 50);
  EXPECT_NE(forged.complaint().find("bytes unpacked; at most"), std::string::npos);
  // Within limits, but not what the packed bytes say.
  forged.put(kShape, std::uint64_t{1} << 19);
  forged.put(kEntry + offsetof(EntryHead, raw_bytes), std::uint64_t{1} << 21);
  EXPECT_NE(forged.complaint().find("are expected"), std::string::npos);
}

TEST(TensorFrame, a_later_version_is_refused_politely) {
  auto later = one_tensor();
  later.put(offsetof(FrameHead, version), std::uint16_t{2});
  try {
    const TensorFrame frame(later.bytes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unsupported);
    EXPECT_NE(std::string(error.what()).find("version 2; this program reads version 1"),
              std::string::npos);
  }
}

TEST(TensorFrame, writing_what_could_not_be_read_says_so) {
  const std::vector<float> values(4);
  const std::uint64_t shape[] = {4}, wrong[] = {5}, vast[] = {std::uint64_t{1} << 63, 4};
  const auto data = std::as_bytes(std::span(values));
  const TensorView good{"a", DType::f32, shape, data};
  const auto refused = [](std::vector<TensorView> tensors, std::string_view metadata = {}) {
    EXPECT_THROW(write_tensor_frame(tensors, metadata), Error);
  };
  refused({good, good});
  refused({{"a", DType::f32, wrong, data}});
  refused({{"a", DType::f32, vast, data}});
  refused({good}, "{");
  refused({good}, "[1]");
  refused({good}, "__import__('os')");
}

TEST(TensorFrame, metadata_is_text_and_stays_text) {
  auto forged = one_tensor();
  const auto with = write_tensor_frame({}, R"({"__reduce__": "x"})");
  EXPECT_EQ(TensorFrame(with).metadata(), R"({"__reduce__": "x"})");
  EXPECT_THROW(TensorFrame(with, {.metadata_bytes = 4}), Error);
}

}  // namespace
}  // namespace sinew
