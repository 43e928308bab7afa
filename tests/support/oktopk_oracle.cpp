#include "support/oktopk_oracle.hpp"

#include <algorithm>

#include "kernel/select.hpp"

namespace sinew::test {

std::vector<bool> largest(const std::vector<float>& values, std::size_t k, bool zeros_too,
                          const std::vector<bool>& among) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < values.size(); ++i)
    if (among[i] && (zeros_too || magnitude(values[i]) > 0)) order.push_back(i);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(k, order.size()));
  std::nth_element(order.begin(), end, order.end(), [&](auto a, auto b) {
    const auto x = magnitude(values[a]), y = magnitude(values[b]);
    return x > y || (x == y && a < b);
  });
  std::vector<bool> chosen(values.size());
  for (auto at = order.begin(); at != end; ++at) chosen[*at] = true;
  return chosen;
}

std::vector<float> Oracle::step(const Vectors& gradients, std::size_t k) {
  const auto elements = gradients.front().size();
  if (kept.empty()) kept.assign(gradients.size(), std::vector<float>(elements));
  Vectors sums = gradients;
  chosen.clear();
  std::vector<float> total(elements);
  std::vector<bool> touched(elements);
  for (std::size_t rank = 0; rank < sums.size(); ++rank) {
    for (std::size_t i = 0; i < elements; ++i) sums[rank][i] += kept[rank][i];
    chosen.push_back(largest(sums[rank], k, false, std::vector<bool>(elements, true)));
    for (std::size_t i = 0; i < elements; ++i) {
      if (!chosen[rank][i]) continue;
      total[i] += sums[rank][i];
      touched[i] = true;
    }
  }
  const auto stays = largest(total, k, true, touched);
  for (std::size_t i = 0; i < elements; ++i) {
    for (std::size_t rank = 0; rank < sums.size(); ++rank)
      kept[rank][i] = stays[i] && chosen[rank][i] ? 0 : sums[rank][i];
    total[i] = stays[i] ? total[i] / static_cast<float>(sums.size()) : 0;
  }
  return total;
}

}  // namespace sinew::test
