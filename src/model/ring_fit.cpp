#include "model/ring_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include <sinew/error.hpp>
#include "model/calibration.hpp"

namespace sinew {

Network fit_ring(Collective collective, int ranks, std::span<const Sample> times) {
  const bool known = collective == Collective::allreduce || collective == Collective::allgather ||
                     collective == Collective::reduce_scatter || collective == Collective::alltoall;
  if (!known)
    throw Error(Errc::invalid_argument,
                fmt::format("from times of {} no costs of messages can be told; allreduce, "
                            "allgather, reduce_scatter and alltoall are possible",
                            name(collective)));
  if (ranks < 2) throw Error(Errc::invalid_argument, "times of how many ranks? Say -p N");
  if (times.size() < 2)
    throw Error(Errc::invalid_argument, "at least two sizes are needed to tell costs apart");
  const double messages = (collective == Collective::allreduce ? 2.0 : 1.0) * (ranks - 1);
  std::vector<Sample> each;
  for (const auto& sample : times) each.push_back({sample.bytes / ranks, sample.ps / messages});
  // Sizes that all take the same time say nothing about the rate; a file needs one all the same.
  constexpr double kLeastBytePs = 1e-3;
  auto parts = fit_curve(each).segments();
  for (auto& part : parts) part.byte_ps = std::max(part.byte_ps, kLeastBytePs);
  Network network;
  network.exchange = Curve(std::move(parts));
  network.one_way = network.exchange;
  network.eager_bytes = -1;
  std::vector<double> ratios;
  for (const auto& sample : each) {
    const auto cost = network.one_way.at(sample.bytes);
    ratios.push_back(sample.ps /
                     static_cast<double>(std::max<Picoseconds>(1, cost.alpha + cost.beta)));
  }
  std::sort(ratios.begin(), ratios.end());
  network.error = error_bar(ratios);
  network.provenance.ranks = ranks;
  network.provenance.left_out_error = left_out_error(each);
  network.provenance.schedule_error = median_error(ratios);
  return network;
}

}  // namespace sinew
