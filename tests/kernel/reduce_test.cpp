#include "kernel/reduce.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <string>

#include <sinew/error.hpp>
#include "kernel/kernel_data.hpp"

namespace sinew::test {
namespace {

constexpr std::array<std::size_t, 18> kCounts{0,  1,  2,  3,  7,  8,   15,   16,   17,
                                              31, 33, 63, 64, 65, 100, 1000, 1023, 4096 + 5};
constexpr std::array<std::size_t, 10> kInputs{1, 2, 3, 4, 5, 6, 7, 8, 9, 33};

struct Layout {
  std::size_t offset = 0;  // of every buffer from a 64-byte boundary, in bytes
  std::size_t dsts = 1;
  int alias = -1;  // the first destination is this input; the second, if any, the input after it
  std::size_t streamed = 0;
};

class ReduceTest : public testing::TestWithParam<DType> {
 protected:
  ~ReduceTest() override { choose_simd_for_test(SimdLevel::best); }

  const DType dtype = GetParam();
  const std::size_t element_bytes = size_of(dtype);
  const std::vector<std::byte> pool = mixed_elements(dtype, 16384);

  /// Input number `i`: another stretch of the pool.
  [[nodiscard]] const std::byte* values(std::size_t i) const {
    return pool.data() + (i * 311) % 8192 * element_bytes;
  }

  /// One fold against the reference: bits, untouched inputs, untouched surroundings.
  void check_fold(const Reducer& reducer, std::size_t inputs, std::size_t elements,
                  const Layout& layout) const {
    const std::size_t bytes = elements * element_bytes;
    std::deque<Guarded> buffers;
    std::vector<const std::byte*> from, reference_from;
    for (std::size_t i = 0; i < inputs; ++i) {
      buffers.emplace_back(bytes, layout.offset).fill(values(i));
      from.push_back(buffers.back().data());
      reference_from.push_back(values(i));
    }
    std::vector<std::byte*> dsts;
    std::vector<bool> is_dst(inputs, false);
    for (std::size_t d = 0; d < layout.dsts; ++d) {
      const std::size_t input = static_cast<std::size_t>(layout.alias) + d;
      if (layout.alias >= 0 && input < inputs) {
        dsts.push_back(buffers[input].data());
        is_dst[input] = true;
      } else {
        dsts.push_back(buffers.emplace_back(bytes, layout.offset).data());
      }
    }
    std::vector<std::byte> expected(bytes);
    const std::array<std::byte*, 1> reference_dst{expected.data()};
    find_scalar_reducer(dtype, reducer.op).fold(reference_dst, reference_from, elements, 0);

    reducer.fold(dsts, from, elements, layout.streamed);

    const auto story = [&] {
      return std::string(name(dtype)) + " " + std::string(name(reducer.op)) + ", " +
             std::to_string(inputs) + " inputs of " + std::to_string(elements) + ", offset " +
             std::to_string(layout.offset) + ", dsts " + std::to_string(layout.dsts) + ", alias " +
             std::to_string(layout.alias) + ", streamed " + std::to_string(layout.streamed);
    };
    for (const std::byte* dst : dsts) {
      ASSERT_EQ(first_difference(dtype, dst, expected.data(), elements, is_arithmetic(reducer.op)),
                -1)
          << story();
    }
    for (std::size_t i = 0; i < inputs; ++i) {
      if (bytes == 0 || is_dst[i]) continue;
      ASSERT_EQ(std::memcmp(from[i], values(i), bytes), 0) << "input changed: " << story();
    }
    for (const Guarded& buffer : buffers) ASSERT_TRUE(buffer.intact()) << story();
  }
};

TEST_P(ReduceTest, fold_has_the_bits_of_the_reference_for_all_counts_and_inputs) {
  // Each case also takes the next of these, so that all of them meet many counts.
  const std::vector<Layout> layouts{{},
                                    {.offset = element_bytes},
                                    {.offset = 3, .streamed = 1},
                                    {.streamed = 1},
                                    {.offset = element_bytes, .dsts = 3, .streamed = 3},
                                    {.offset = element_bytes, .dsts = 3, .streamed = 1},
                                    {.offset = 1, .dsts = 2},
                                    {.alias = 0}};
  std::size_t turn = 0;
  for (const SimdLevel level : kSimdLevels) {
    choose_simd_for_test(level);
    for (const ReduceOp op : kReduceOps) {
      if (!supports(dtype, op)) continue;
      const Reducer reducer = find_reducer(dtype, op);
      for (const std::size_t inputs : kInputs) {
        for (const std::size_t elements : kCounts) {
          check_fold(reducer, inputs, elements, layouts[turn++ % layouts.size()]);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(ReduceTest, a_destination_may_be_any_input) {
  for (const SimdLevel level : kSimdLevels) {
    choose_simd_for_test(level);
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min}) {
      const Reducer reducer = find_reducer(dtype, op);
      for (const std::size_t inputs : {1U, 2U, 3U, 4U, 5U, 8U, 9U}) {
        for (int alias = 0; alias < static_cast<int>(inputs); ++alias) {
          for (const std::size_t elements : {1U, 16U, 17U, 65U, 1023U}) {
            for (const std::size_t streamed : {0U, 1U}) {
              check_fold(reducer, inputs, elements, {.alias = alias, .streamed = streamed});
              check_fold(
                  reducer, inputs, elements,
                  {.offset = element_bytes, .dsts = 2, .alias = alias, .streamed = streamed});
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST_P(ReduceTest, streaming_works_from_every_alignment) {
  for (const SimdLevel level : kSimdLevels) {
    choose_simd_for_test(level);
    const Reducer reducer = find_reducer(dtype, ReduceOp::sum);
    for (std::size_t offset = 0; offset < 64; ++offset) {
      for (const std::size_t elements : {128U, 129U, 515U, 1000U}) {
        check_fold(reducer, 2, elements, {.offset = offset, .streamed = 1});
        check_fold(reducer, 5, elements, {.offset = offset, .dsts = 2, .alias = 1, .streamed = 2});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ReduceTest, destinations_of_unlike_alignment_are_all_written) {
  for (const SimdLevel level : kSimdLevels) {
    choose_simd_for_test(level);
    const Reducer reducer = find_reducer(dtype, ReduceOp::sum);
    constexpr std::size_t kElements = 777;
    Guarded expected(kElements * element_bytes);
    const std::array<const std::byte*, 2> inputs{values(0), values(1)};
    const std::array<std::byte*, 1> reference{expected.data()};
    find_scalar_reducer(dtype, ReduceOp::sum).fold(reference, inputs, kElements, 0);
    for (const std::size_t streamed : {0U, 1U, 2U})
      for (const bool swapped : {false, true}) {
        Guarded near(kElements * element_bytes), far(kElements * element_bytes, element_bytes);
        std::array<std::byte*, 2> dsts{near.data(), far.data()};
        if (swapped) std::swap(dsts[0], dsts[1]);
        reducer.fold(dsts, inputs, kElements, streamed);
        for (Guarded* got : {&near, &far}) {
          EXPECT_EQ(first_difference(dtype, got->data(), expected.data(), kElements, true), -1);
          EXPECT_TRUE(got->intact());
        }
      }
  }
}

TEST_P(ReduceTest, fold_has_the_bits_of_repeated_pair) {
  for (const SimdLevel level : kSimdLevels) {
    choose_simd_for_test(level);
    for (const ReduceOp op : kReduceOps) {
      if (!supports(dtype, op)) continue;
      const Reducer reducer = find_reducer(dtype, op);
      for (const std::size_t inputs : kInputs) {
        for (const std::size_t elements : kCounts) {
          const std::size_t bytes = elements * element_bytes;
          Guarded folded(bytes, 2), paired(bytes, 5);
          std::vector<const std::byte*> from;
          for (std::size_t i = 0; i < inputs; ++i) from.push_back(values(i));
          paired.fill(values(0));
          for (std::size_t i = 1; i < inputs; ++i) reducer.pair(paired.data(), values(i), elements);
          const std::array<std::byte*, 1> dsts{folded.data()};
          reducer.fold(dsts, from, elements, 0);
          ASSERT_EQ(
              first_difference(dtype, folded.data(), paired.data(), elements, is_arithmetic(op)),
              -1)
              << name(dtype) << ' ' << name(op) << ' ' << inputs << " x " << elements;
          ASSERT_TRUE(paired.intact() && folded.intact());
        }
      }
    }
  }
}

TEST_P(ReduceTest, order_of_two_operands_never_shows) {
  // Every awkward value with every other: zeros of both signs, infinities, NaNs, extremes.
  std::vector<std::byte> left, right;
  with_element(dtype, [&]<class T>() {
    const auto append = [](std::vector<std::byte>& to, T value) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      to.insert(to.end(), bytes, bytes + sizeof(T));
    };
    for (const T a : awkward_values<T>()) {
      for (const T b : awkward_values<T>()) {
        append(left, a);
        append(right, b);
      }
    }
  });
  const std::size_t elements = left.size() / element_bytes;
  for (const SimdLevel level : kSimdLevels) {
    choose_simd_for_test(level);
    for (const ReduceOp op : kReduceOps) {
      if (!supports(dtype, op)) continue;
      const Reducer reducer = find_reducer(dtype, op);
      std::vector<std::byte> ab = left, ba = right;
      reducer.pair(ab.data(), right.data(), elements);
      reducer.pair(ba.data(), left.data(), elements);
      EXPECT_EQ(first_difference(dtype, ab.data(), ba.data(), elements, is_arithmetic(op)), -1)
          << name(dtype) << ' ' << name(op);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(types, ReduceTest, testing::ValuesIn(kDTypes),
                         [](const auto& tested) { return std::string(name(tested.param)); });

float reduce_two(ReduceOp op, float a, float b, bool scalar) {
  const Reducer reducer =
      scalar ? find_scalar_reducer(DType::f32, op) : find_reducer(DType::f32, op);
  reducer.pair(reinterpret_cast<std::byte*>(&a), reinterpret_cast<const std::byte*>(&b), 1);
  return a;
}

TEST(reduce_values, minimum_and_maximum_order_zeros_and_keep_one_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  for (const bool scalar : {false, true}) {
    EXPECT_TRUE(std::signbit(reduce_two(ReduceOp::min, 0.0F, -0.0F, scalar)));
    EXPECT_TRUE(std::signbit(reduce_two(ReduceOp::min, -0.0F, 0.0F, scalar)));
    EXPECT_FALSE(std::signbit(reduce_two(ReduceOp::max, 0.0F, -0.0F, scalar)));
    EXPECT_FALSE(std::signbit(reduce_two(ReduceOp::max, -0.0F, 0.0F, scalar)));
    for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
      EXPECT_EQ(bits(reduce_two(op, -nan, 1.0F, scalar)), 0x7FC0'0000U);
      EXPECT_EQ(bits(reduce_two(op, -INFINITY, -nan, scalar)), 0x7FC0'0000U);
    }
    EXPECT_EQ(reduce_two(ReduceOp::min, 2.0F, -3.0F, scalar), -3.0F);
    EXPECT_EQ(reduce_two(ReduceOp::max, 2.0F, -3.0F, scalar), 2.0F);
    EXPECT_EQ(reduce_two(ReduceOp::prod, 2.0F, -3.0F, scalar), -6.0F);
    EXPECT_EQ(reduce_two(ReduceOp::avg, 2.0F, -3.0F, scalar), -1.0F);  // divide() is separate
  }
}

TEST(reduce_values, integers_wrap) {
  for (const auto find : {find_reducer, find_scalar_reducer}) {
    std::int8_t byte = 127;
    const std::int8_t two = 2;
    find(DType::i8, ReduceOp::sum)
        .pair(reinterpret_cast<std::byte*>(&byte), reinterpret_cast<const std::byte*>(&two), 1);
    EXPECT_EQ(byte, -127);
    std::int64_t word = std::numeric_limits<std::int64_t>::max();
    const std::int64_t three = 3;
    find(DType::i64, ReduceOp::prod)
        .pair(reinterpret_cast<std::byte*>(&word), reinterpret_cast<const std::byte*>(&three), 1);
    EXPECT_EQ(word, std::numeric_limits<std::int64_t>::max() - 2);
  }
}

TEST(reduce_values, half_precision_rounds_after_every_operation) {
  // 2048 + 1 rounds back to 2048 in f16; adding 1 + 1 first would give 2050.
  const f16 large = to_f16(2048.0F), one = to_f16(1.0F);
  f16 result{};
  const std::array<std::byte*, 1> dsts{reinterpret_cast<std::byte*>(&result)};
  const std::array<const std::byte*, 3> inputs{reinterpret_cast<const std::byte*>(&large),
                                               reinterpret_cast<const std::byte*>(&one),
                                               reinterpret_cast<const std::byte*>(&one)};
  find_reducer(DType::f16, ReduceOp::sum).fold(dsts, inputs, 1, 0);
  EXPECT_EQ(to_float(result), 2048.0F);
}

TEST(find_reducer, refuses_bitwise_on_floats_and_names_both) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const ReduceOp op : {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor}) {
      for (const auto find : {find_reducer, find_scalar_reducer}) {
        try {
          find(dtype, op);
          FAIL() << "accepted " << name(op) << " on " << name(dtype);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Errc::unsupported);
          const std::string what = error.what();
          EXPECT_NE(what.find("'" + std::string(name(dtype)) + "'"), std::string::npos) << what;
          EXPECT_NE(what.find("'" + std::string(name(op)) + "'"), std::string::npos) << what;
        }
      }
    }
  }
}

TEST(find_reducer, describes_what_was_asked_for) {
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : kReduceOps) {
      if (!supports(dtype, op)) continue;
      for (const auto find : {find_reducer, find_scalar_reducer}) {
        const Reducer reducer = find(dtype, op);
        EXPECT_EQ(reducer.dtype, dtype);
        EXPECT_EQ(reducer.op, op);
        EXPECT_EQ(reducer.element_bytes, size_of(dtype));
      }
    }
  }
}

template <class T>
std::vector<T> divided(std::vector<T> values, int divisor) {
  divide(DTypeOf<T>::value, reinterpret_cast<std::byte*>(values.data()), values.size(), divisor);
  return values;
}

TEST(divide, truncates_integers_and_rounds_floats) {
  EXPECT_EQ(divided<std::int8_t>({-128, -7, -1, 0, 7, 127}, 3),
            (std::vector<std::int8_t>{-42, -2, 0, 0, 2, 42}));
  EXPECT_EQ(divided<std::uint8_t>({255, 254}, 300), (std::vector<std::uint8_t>{0, 0}));
  EXPECT_EQ(divided<std::uint64_t>({~0ULL}, 2), (std::vector<std::uint64_t>{~0ULL / 2}));
  EXPECT_EQ(divided<std::int64_t>({-9'000'000'000}, 4),
            (std::vector<std::int64_t>{-2'250'000'000}));
  EXPECT_EQ(divided<float>({1.0F, -2.0F}, 3), (std::vector<float>{1.0F / 3.0F, -2.0F / 3.0F}));
  EXPECT_EQ(divided<double>({1.0}, 3), (std::vector<double>{1.0 / 3.0}));
}

TEST(divide, divides_every_half_precision_element_through_f32) {
  std::vector<f16> half;
  std::vector<bf16> brain;
  for (std::uint32_t bits = 0; bits < 1300; ++bits) {  // two full blocks and a part
    half.push_back({static_cast<std::uint16_t>(bits * 17)});
    brain.push_back({static_cast<std::uint16_t>(bits * 17)});
  }
  const auto half_third = divided(half, 3);
  const auto brain_third = divided(brain, 3);
  for (std::size_t i = 0; i < half.size(); ++i) {
    ASSERT_EQ(half_third[i], to_f16(to_float(half[i]) / 3.0F)) << i;
    ASSERT_EQ(brain_third[i], to_bf16(to_float(brain[i]) / 3.0F)) << i;
  }
}

}  // namespace
}  // namespace sinew::test
