#include "kernel/convert.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "kernel/kernel_data.hpp"

namespace sinew::test {
namespace {

/// What the 16 bits mean, from the definition of the format.
double meaning(std::uint16_t bits, int mantissa_bits, int bias) {
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits & 0x7FFF) >> mantissa_bits;
  const int top_exponent = 0x7FFF >> mantissa_bits;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == top_exponent) return sign * (mantissa == 0 ? INFINITY : NAN);
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

struct Half {
  using type = f16;
  static constexpr int kMantissaBits = 10, kBias = 15;
  static f16 narrow(float value) { return to_f16(value); }
};
struct Brain {
  using type = bf16;
  static constexpr int kMantissaBits = 7, kBias = 127;
  static bf16 narrow(float value) { return to_bf16(value); }
};

template <class Format>
class ConvertTest : public testing::Test {
 protected:
  ~ConvertTest() override { choose_simd_for_test(SimdLevel::best); }
};
using Formats = testing::Types<Half, Brain>;
TYPED_TEST_SUITE(ConvertTest, Formats);

constexpr std::uint32_t kPatterns = 1U << 16;

template <class Format>
double meaning_of(std::uint32_t bits) {
  return meaning(static_cast<std::uint16_t>(bits), Format::kMantissaBits, Format::kBias);
}

TYPED_TEST(ConvertTest, every_pattern_widens_to_its_meaning_and_comes_back) {
  using T = typename TypeParam::type;
  for (std::uint32_t bits = 0; bits < kPatterns; ++bits) {
    const T narrow{static_cast<std::uint16_t>(bits)};
    const double expected = meaning_of<TypeParam>(bits);
    const float wide = to_float(narrow);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide)) << bits;
      ASSERT_TRUE(std::isnan(to_float(TypeParam::narrow(wide)))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(wide), expected) << bits;
      ASSERT_EQ(std::signbit(wide), std::signbit(expected)) << bits;
      ASSERT_EQ(TypeParam::narrow(wide), narrow) << bits;
    }
  }
}

TYPED_TEST(ConvertTest, ties_go_to_even_and_everything_else_to_the_nearest) {
  using T = typename TypeParam::type;
  const std::uint32_t infinity = 0x7FFFU >> TypeParam::kMantissaBits << TypeParam::kMantissaBits;
  for (std::uint32_t bits = 0; bits < infinity; ++bits) {
    const T below{static_cast<std::uint16_t>(bits)}, above{static_cast<std::uint16_t>(bits + 1)};
    // Past the largest number the next step would be where infinity's pattern stands.
    const double step = bits + 1 < infinity
                            ? meaning_of<TypeParam>(bits + 1) - meaning_of<TypeParam>(bits)
                            : meaning_of<TypeParam>(bits) - meaning_of<TypeParam>(bits - 1);
    const auto middle = static_cast<float>(meaning_of<TypeParam>(bits) + step / 2);
    ASSERT_EQ(TypeParam::narrow(middle), bits % 2 == 0 ? below : above) << bits;
    ASSERT_EQ(TypeParam::narrow(std::nextafter(middle, 0.0F)), below) << bits;
    ASSERT_EQ(TypeParam::narrow(std::nextafter(middle, INFINITY)), above) << bits;
    const std::uint16_t negative = TypeParam::narrow(-middle).bits;
    ASSERT_EQ(negative, TypeParam::narrow(middle).bits | 0x8000) << bits;
  }
}

TYPED_TEST(ConvertTest, arrays_have_the_bits_of_single_values) {
  using T = typename TypeParam::type;
  std::vector<float> wide;
  for (std::uint32_t high = 0; high < kPatterns; ++high) {
    for (const std::uint32_t low : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x3000U, 0x7FFFU,
                                    0x8000U, 0x8001U, 0xF000U, 0xFFFFU}) {
      wide.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  std::vector<T> patterns;
  for (std::uint32_t bits = 0; bits < kPatterns; ++bits) {
    patterns.push_back({static_cast<std::uint16_t>(bits)});
  }
  for (const SimdLevel level : kSimdLevels) {
    choose_simd_for_test(level);
    std::vector<T> narrowed(wide.size());
    convert(std::span<const float>(wide), std::span(narrowed));
    for (std::size_t i = 0; i < wide.size(); ++i) {
      ASSERT_EQ(narrowed[i], TypeParam::narrow(wide[i]))
          << std::hex << std::bit_cast<std::uint32_t>(wide[i]);
    }
    std::vector<float> widened(patterns.size());
    convert(std::span<const T>(patterns), std::span(widened));
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(widened[i]),
                std::bit_cast<std::uint32_t>(to_float(patterns[i])))
          << std::hex << i;
    }
  }
}

TYPED_TEST(ConvertTest, short_arrays_are_converted_whole_and_nothing_after_them) {
  using T = typename TypeParam::type;
  for (const SimdLevel level : kSimdLevels) {
    choose_simd_for_test(level);
    for (std::size_t elements = 0; elements < 70; ++elements) {
      std::vector<float> wide(elements + 1, 3.0F);
      std::vector<T> narrow(elements + 1, T{0xABCD});
      convert(std::span<const float>(wide).first(elements), std::span(narrow).first(elements));
      for (std::size_t i = 0; i < elements; ++i) ASSERT_EQ(to_float(narrow[i]), 3.0F);
      ASSERT_EQ(narrow[elements].bits, 0xABCD);
      std::vector<float> back(elements + 1, -1.0F);
      convert(std::span<const T>(narrow).first(elements), std::span(back).first(elements));
      for (std::size_t i = 0; i < elements; ++i) ASSERT_EQ(back[i], 3.0F);
      ASSERT_EQ(back[elements], -1.0F);
    }
  }
}

TEST(AddConverted, adds_every_element_once_and_nothing_after_them) {
  for (const SimdLevel level : kSimdLevels) {
    choose_simd_for_test(level);
    for (std::size_t elements = 0; elements < 70; ++elements) {
      std::vector<bf16> from(elements + 1, to_bf16(4.0F));
      std::vector<float> to(elements + 1, 0.5F);
      for (std::size_t i = 0; i < elements; ++i) from[i] = to_bf16(static_cast<float>(i) - 3);
      add_converted(std::span<const bf16>(from).first(elements), std::span(to).first(elements));
      for (std::size_t i = 0; i < elements; ++i)
        ASSERT_EQ(to[i], static_cast<float>(i) - 2.5F) << i << " of " << elements;
      ASSERT_EQ(to[elements], 0.5F);
    }
  }
  choose_simd_for_test(SimdLevel::best);
}

}  // namespace
}  // namespace sinew::test
