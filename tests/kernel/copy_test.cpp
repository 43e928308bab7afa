#include "kernel/copy.hpp"

#include <gtest/gtest.h>

#include "kernel/kernel_data.hpp"

namespace sinew::test {
namespace {

class CopyTest : public testing::Test {
 protected:
  ~CopyTest() override { choose_simd_for_test(SimdLevel::best); }
};

TEST_F(CopyTest, copies_exactly_the_bytes_asked_for_at_any_alignment) {
  const std::vector<std::byte> pool = mixed_elements(DType::u8, 40'000);
  for (const SimdLevel level : kSimdLevels) {
    choose_simd_for_test(level);
    for (const bool streaming : {false, true}) {
      for (const std::size_t bytes : {0, 1, 63, 64, 100, 4095, 4096, 4097, 5000, 30'001}) {
        for (std::size_t offset = 0; offset < 64; offset += 7) {
          Guarded dst(bytes, offset);
          const std::byte* src = pool.data() + offset * 3;
          copy_bytes(dst.data(), src, bytes, streaming);
          ASSERT_TRUE(bytes == 0 || std::memcmp(dst.data(), src, bytes) == 0)
              << bytes << " bytes, offset " << offset << ", streaming " << streaming;
          ASSERT_TRUE(dst.intact()) << bytes << " bytes, offset " << offset;
        }
      }
    }
  }
}

TEST_F(CopyTest, onto_itself_changes_nothing) {
  const std::vector<std::byte> before = mixed_elements(DType::u8, 10'000);
  std::vector<std::byte> data = before;
  copy_bytes(data.data(), data.data(), data.size(), true);
  EXPECT_EQ(data, before);
  copy_bytes(nullptr, nullptr, 0, true);
}

}  // namespace
}  // namespace sinew::test
