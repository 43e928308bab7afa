#include "model/bounds.hpp"

#include <algorithm>
#include <bit>

namespace sinew {
namespace {

// The share of the message that some rank must send or receive in messages.
double moved_share(Collective collective, double size) {
  const double others = (size - 1) / size;
  switch (collective) {
    case Collective::allreduce:
      return 2 * others;
    case Collective::reduce:
    case Collective::broadcast:
      return 1;
    case Collective::barrier:
      return 0;
    default:
      return others;
  }
}

// The cheapest of all the ways a message could go.
double least(const Network& network, double (Curve::*value)() const noexcept) {
  double result = (network.one_way.*value)();
  const auto consider = [&](const Curve& curve) {
    if (!curve.is_free()) result = std::min(result, (curve.*value)());
  };
  consider(network.exchange);
  for (const auto& link : network.topology.links) consider(link.one_way), consider(link.exchange);
  return result;
}

}  // namespace

double lower_bound_ps(Collective collective, int size, double bytes, const Network& network) {
  if (size < 2) return 0;
  const double others = (size - 1.0) / size;
  const double rounds = std::bit_width(static_cast<unsigned>(size - 1));
  double alpha = rounds * least(network, &Curve::least_alpha_ps);
  double byte = least(network, &Curve::least_byte_ps);
  double moved = moved_share(collective, size);
  if (network.board) {
    alpha = std::min(alpha, network.board->wait_ps);
    byte = std::min(byte, network.board->gather.least_byte_ps());
    if (!network.board->pull.is_free()) byte = std::min(byte, network.board->pull.least_byte_ps());
    moved = std::min(moved, collective == Collective::broadcast ? 1.0 : others);
  }
  const double combined = reduces(collective) ? others / (network.board ? size : 1) : 0;
  return std::max({alpha, moved * bytes * byte, combined * bytes * network.reduce.least_byte_ps()});
}

}  // namespace sinew
