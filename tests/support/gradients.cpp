#include "support/gradients.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "support/local_ranks.hpp"

namespace sinew::test {
namespace {

// Counter-based, so that every element can be had on its own.
double uniform(std::uint64_t stream, std::uint64_t at) {
  std::uint64_t x = stream * 0x9E3779B97F4A7C15U + at * 0xD6E8FEB86659FD93U + 0x632BE59BD9B4E019U;
  x = (x ^ x >> 32) * 0xD6E8FEB86659FD93U;
  x = (x ^ x >> 29) * 0xA0761D6478BD642FU;
  x ^= x >> 32;
  return (static_cast<double>(x >> 11) + 0.5) * 0x1p-53;
}

double laplace(std::uint64_t stream, std::uint64_t at) {
  const double u = uniform(stream, at) - 0.5;
  return u < 0 ? std::log(1 + 2 * u) : -std::log(1 - 2 * u);
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace

std::vector<float> gradient(std::size_t elements, int rank, std::uint64_t step, float scale) {
  std::vector<float> values(elements);
  const auto layer = elements / 7 + 1;
  for (std::size_t i = 0; i < elements; ++i) {
    const double size = std::exp(2 * uniform(7, i / layer) - 1);
    const double common = laplace(step * 2 + 1, i);
    const double own = laplace((step * 64 + static_cast<std::uint64_t>(rank)) * 2 + 2, i);
    values[i] = scale * static_cast<float>(size * (0.5 * common + own));
  }
  return values;
}

Stepped take_step(Compressor& compressor, const std::vector<float>& gradient) {
  Stepped stepped;
  stepped.came_in = gradient;
  const auto before = compressor.feedback().kept();
  for (std::size_t i = 0; i < before.size(); ++i) stepped.came_in[i] += before[i];
  stepped.result = gradient;
  stepped.report = compressor.allreduce(stepped.result);
  const auto after = compressor.feedback().kept();
  stepped.kept.assign(after.begin(), after.end());
  stepped.kept.resize(gradient.size());
  return stepped;
}

std::string conservation_fault(const std::vector<Stepped>& ranks, ReduceOp op) {
  const auto& first = ranks.front();
  const float divisor = op == ReduceOp::avg ? static_cast<float>(ranks.size()) : 1.0F;
  for (std::size_t i = 0; i < first.result.size(); ++i) {
    float sum = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const auto& one = ranks[rank];
      if (!same(one.result[i], first.result[i]))
        return fmt::format("element {}: rank {} has {}, rank 0 {}", i, rank, one.result[i],
                           first.result[i]);
      if (same(one.kept[i], one.came_in[i])) continue;  // nothing of it was sent
      if (one.kept[i] != 0)
        return fmt::format("element {}: rank {} keeps {} of {}", i, rank, one.kept[i],
                           one.came_in[i]);
      sum += one.came_in[i];
    }
    if (!same(sum / divisor, first.result[i]))
      return fmt::format("element {}: {} was sent, but the result is {}", i, sum / divisor,
                         first.result[i]);
  }
  return {};
}

std::string difference(std::span<const float> a, std::span<const float> b, std::string_view what) {
  if (a.size() != b.size()) return fmt::format("{}: {} and {} elements", what, a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0)
      return fmt::format("{} of element {}: {} and {}", what, i, a[i], b[i]);
  return {};
}

std::string on_ranks(int size, const std::function<std::string(Communicator&)>& body, bool tcp) {
  Complaints complaints(size);
  LocalSetup setup;
  setup.tcp = tcp;
  on_local(
      size, [&](Communicator& c) { complaints.add(c.rank(), body(c)); }, setup);
  return complaints.text();
}

}  // namespace sinew::test
