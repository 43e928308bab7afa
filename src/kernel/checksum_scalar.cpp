// The reference, plainly. Also what a processor runs that has none of the instruction sets in
// simd_targets.hpp.
#include <array>
#include <numeric>

#include "kernel/checksum.hpp"

namespace sinew {
namespace {

using Lane = std::array<std::uint8_t, 16>;  // four columns of four rows

constexpr std::uint8_t byte(unsigned value) { return static_cast<std::uint8_t>(value); }

// In GF(2^8), modulo x^8 + x^4 + x^3 + x + 1.
constexpr std::uint8_t twice(std::uint8_t x) { return byte(x << 1 ^ (x >> 7) * 0x11B); }

// The inverse of each byte in GF(2^8), then an affine map.
constexpr std::array<std::uint8_t, 256> kSbox = [] {
  std::array<std::uint8_t, 256> powers{}, sbox{};  // of 3, which are all but 0
  powers[0] = 1;
  for (std::size_t i = 1; i < powers.size(); ++i)
    powers[i] = byte(powers[i - 1] ^ twice(powers[i - 1]));
  const auto mapped = [](unsigned x) {
    unsigned result = 0x63;
    for (unsigned turn = 0; turn < 5; ++turn) result ^= x << turn ^ x >> (8 - turn);
    return byte(result);
  };
  sbox[0] = mapped(0);
  for (std::size_t i = 0; i < 255; ++i) sbox[powers[i]] = mapped(powers[255 - i]);
  return sbox;
}();

// SubBytes, ShiftRows, MixColumns, and the key.
Lane round(const Lane& state, const Lane& key) {
  Lane next{};
  for (std::size_t column = 0; column < 4; ++column) {
    std::array<std::uint8_t, 4> x{};
    for (std::size_t row = 0; row < 4; ++row) x[row] = kSbox[state[(column + row) % 4 * 4 + row]];
    for (std::size_t row = 0; row < 4; ++row) {
      const auto a = x[row], b = x[(row + 1) % 4], c = x[(row + 2) % 4], d = x[(row + 3) % 4];
      next[column * 4 + row] = byte(twice(byte(a ^ b)) ^ b ^ c ^ d ^ key[column * 4 + row]);
    }
  }
  return next;
}

}  // namespace

std::uint64_t checksum_scalar(std::span<const std::byte> bytes) noexcept {
  std::array<Lane, 16> lanes{};
  for (std::size_t lane = 0; lane < lanes.size(); ++lane)
    std::iota(lanes[lane].begin(), lanes[lane].end(), byte(lane * Lane().size()));
  const Lane first = lanes[0];
  constexpr std::size_t kStripe = sizeof lanes;
  const auto stripes = (bytes.size() + kStripe - 1) / kStripe;
  for (std::size_t i = 0; i < stripes * lanes.size(); ++i) {
    Lane data{};
    for (std::size_t k = 0; k < data.size(); ++k)
      if (const auto at = i * data.size() + k; at < bytes.size())
        data[k] = byte(unsigned(bytes[at]));
    auto& lane = lanes[i % lanes.size()];
    lane = round(lane, data);
  }
  for (auto& lane : lanes)
    for (int i = 0; i < 4; ++i) lane = round(lane, first);
  Lane all{};
  for (std::size_t i = 0; i < 8; ++i) all[i] = byte(unsigned(bytes.size() >> (8 * i)));
  for (const auto& lane : lanes) all = round(all, lane);
  for (int i = 0; i < 3; ++i) all = round(all, first);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < 8; ++i) sum |= std::uint64_t{all[i]} << (8 * i);
  return sum;
}

}  // namespace sinew
