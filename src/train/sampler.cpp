#include "train/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sinew/error.hpp>
#include "base/counter_random.hpp"

namespace sinew {
namespace {

constexpr std::uint64_t kOrderStream = 0x6F72646572;

}  // namespace

Sampler::Sampler(const Sampling& sampling) : sampling_(sampling) {
  if (sampling.global_batch == 0) throw Error(Errc::invalid_argument, "a batch of no samples");
  if (sampling.samples < static_cast<std::size_t>(sampling.size))
    throw Error(Errc::invalid_argument,
                fmt::format("{} workers for {} samples: use fewer workers or more data",
                            sampling.size, sampling.samples));
  if (sampling.samples > 0xFFFFFFFF)
    throw Error(Errc::unsupported,
                fmt::format("{} samples; up to {} are counted", sampling.samples, 0xFFFFFFFF));
  steps_per_epoch_ = (sampling.samples + sampling.global_batch - 1) / sampling.global_batch;
}

void Sampler::at(std::uint64_t step, Share& into) const {
  const auto epoch = step / steps_per_epoch_;
  const auto first = step % steps_per_epoch_ * sampling_.global_batch;
  const Permutation order(static_cast<std::uint32_t>(sampling_.samples),
                          random_key(sampling_.seed, kOrderStream, epoch));
  into.of_all = std::min(sampling_.global_batch, sampling_.samples - first);
  const auto rank = static_cast<std::size_t>(sampling_.rank);
  const auto size = static_cast<std::size_t>(sampling_.size);
  into.samples.clear();
  for (auto i = into.of_all * rank / size; i < into.of_all * (rank + 1) / size; ++i)
    into.samples.push_back(order(static_cast<std::uint32_t>(first + i)));
}

}  // namespace sinew
