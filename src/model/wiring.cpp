#include "model/wiring.hpp"

#include <algorithm>

#include "base/counter_random.hpp"

namespace sinew {
namespace {

constexpr std::uint64_t kStragglerStream = 0x57A6;

bool is_shared(const NetworkLevel& level, bool innermost) {
  // The links of a rank are its ports, which serve one message at a time anyway.
  return level.sharing == Sharing::level || (level.sharing == Sharing::member && !innermost);
}

}  // namespace

Wiring::Wiring(const Network& network, int size)
    : network_(network),
      uniform_(network.topology.empty() && network.noise.deviation == 0 &&
               network.stragglers.share == 0),
      used_(network.topology.links.size(), false) {
  network.topology.check_covers(size);
  add_persons(size);
  add_tiers(size);
  path_resources_ = static_cast<std::uint32_t>(capacities_.size());
  for (const auto& link : network.topology.links)  // each way
    capacities_.insert(capacities_.end(), 2, 1 / link.full_byte_ps());
}

void Wiring::add_persons(int size) {
  const auto& stragglers = network_.stragglers;
  if (network_.topology.ranks.empty() && stragglers.share == 0) return;
  persons_.resize(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    auto& person = persons_[static_cast<std::size_t>(rank)];
    for (const auto& traits : network_.topology.ranks) {
      if (!traits.ranks.contains(rank)) continue;
      person.delay += whole_ps(traits.delay_ps, 0);
      person.slowness /= traits.speed;
      if (traits.gbytes_per_s > 0)
        person.byte_ps = std::max(person.byte_ps, 1e3 / traits.gbytes_per_s);
    }
    const auto key = random_key(stragglers.seed, kStragglerStream);
    if (random_unit(key, static_cast<std::uint64_t>(rank)) >= static_cast<float>(stragglers.share))
      continue;
    person.delay += whole_ps(stragglers.delay_ps, 0);
    person.slowness /= stragglers.speed;
  }
}

void Wiring::add_tiers(int size) {
  const auto& levels = network_.topology.levels;
  if (!levels.empty() && levels.front().size > 0)
    nodes_ = (size + levels.front().size - 1) / levels.front().size;
  const std::int64_t slots = levels.empty() ? size : nodes_ * std::max(levels.front().size, 1);
  std::int64_t ranks = 1;
  for (const auto& level : levels) {
    tiers_.push_back({ranks, static_cast<std::uint32_t>(capacities_.size())});
    const std::int64_t whole = level.size == 0 ? slots : ranks * level.size;
    if (is_shared(level, ranks == 1)) {
      const double byte_ps =
          level.link < 0
              ? network_.one_way.least_byte_ps()
              : network_.topology.links[static_cast<std::size_t>(level.link)].full_byte_ps();
      const std::int64_t count = level.sharing == Sharing::member
                                     ? 2 * ((slots + ranks - 1) / ranks)
                                     : (slots + whole - 1) / std::max<std::int64_t>(whole, 1);
      capacities_.insert(capacities_.end(), static_cast<std::size_t>(count), level.links / byte_ps);
    }
    ranks = whole;
  }
}

std::int64_t Wiring::slot(int rank) const noexcept {
  const auto& topology = network_.topology;
  if (topology.placement == RankOrder::blocked || topology.levels.front().size == 0) return rank;
  return (rank % nodes_) * topology.levels.front().size + rank / nodes_;
}

Cost Wiring::at(const Curve& one_way, const Curve& exchange, double bytes, bool both) {
  const bool by_exchange = both && !exchange.is_free();
  used_exchange_ |= by_exchange;
  return (by_exchange ? exchange : one_way).at(bytes);
}

Leg Wiring::leg(int from, int to, double bytes, bool exchange) {
  Leg leg;
  if (tiers_.empty() && network_.topology.paths.empty()) {
    leg.cost = at(network_.one_way, network_.exchange, bytes, exchange);
  } else if (!take_path(from, to, bytes, exchange, leg)) {
    take_levels(from, to, bytes, exchange, leg);
  }
  if (!persons_.empty()) {
    const double byte_ps = std::max(persons_[static_cast<std::size_t>(from)].byte_ps,
                                    persons_[static_cast<std::size_t>(to)].byte_ps);
    leg.cost.beta = std::max(leg.cost.beta, whole_ps(byte_ps * bytes, bytes));
  }
  return leg;
}

bool Wiring::take_path(int from, int to, double bytes, bool exchange, Leg& leg) {
  for (const auto& path : network_.topology.paths) {
    const bool along = path.from.contains(from) && path.to.contains(to);
    if (!along && !(path.both_ways && path.from.contains(to) && path.to.contains(from))) continue;
    for (const int index : path.links) {
      const auto& link = network_.topology.links[static_cast<std::size_t>(index)];
      const auto cost = at(link.one_way, link.exchange, bytes, exchange);
      leg.cost.alpha += cost.alpha;
      leg.cost.beta = std::max(leg.cost.beta, cost.beta);
      used_[static_cast<std::size_t>(index)] = true;
      if (link.shared)
        leg.links[leg.count++] =
            path_resources_ + 2 * static_cast<std::uint32_t>(index) + (along ? 0U : 1U);
    }
    return true;
  }
  return false;
}

// Out of the rank, out of the node, ... up to the lowest level that both have in common, and in
// again. The highest of these levels says what the message costs; links below it are passed as well
// and may be full.
void Wiring::take_levels(int from, int to, double bytes, bool exchange, Leg& leg) {
  const auto& levels = network_.topology.levels;
  const auto a = levels.empty() ? from : slot(from), b = levels.empty() ? to : slot(to);
  int link = -1;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    const auto& tier = tiers_[i];
    const auto& level = levels[i];
    const std::int64_t whole = level.size == 0 ? 0 : tier.ranks * level.size;
    const bool common = whole == 0 || a / whole == b / whole;
    link = level.link;
    const auto pass = [&](std::int64_t resource) {
      leg.links[leg.count++] = tier.first_resource + static_cast<std::uint32_t>(resource);
    };
    if (is_shared(level, tier.ranks == 1)) {
      if (level.sharing == Sharing::member) {
        pass(2 * (a / tier.ranks));
        pass(2 * (b / tier.ranks) + 1);
      } else {
        pass(whole == 0 ? 0 : a / whole);
        if (!common) pass(b / whole);
      }
    }
    if (common) break;
  }
  if (link < 0) {
    leg.cost = at(network_.one_way, network_.exchange, bytes, exchange);
    return;
  }
  const auto& kind = network_.topology.links[static_cast<std::size_t>(link)];
  used_[static_cast<std::size_t>(link)] = true;
  leg.cost = at(kind.one_way, kind.exchange, bytes, exchange);
}

}  // namespace sinew
