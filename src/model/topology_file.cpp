#include "model/topology_file.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

constexpr std::array<std::string_view, 3> kSharing{"rank", "member", "level"};
constexpr std::array<std::string_view, 2> kRankOrders{"blocked", "round_robin"};
constexpr std::array<std::string_view, 2> kProgress{"yield", "spin"};
constexpr std::array<std::string_view, 4> kNoise{"normal", "lognormal", "exponential", "pareto"};
constexpr std::size_t kMostLevels = 6, kMostOnPath = 12;

Link read_link(const std::string& name, Section& section) {
  Link link{.name = name};
  link.one_way = section.curve("one_way");
  link.exchange = section.curve("exchange");
  if (section.has("capacity_gbytes_per_s"))
    link.capacity_gbytes = section.above_zero("capacity_gbytes_per_s");
  link.shared = section.flag("shared", false);
  const double alpha_ps = section.number("alpha_us", 0, 0) * kUs;
  const bool has_rate = section.has("gbytes_per_s");
  if (!link.one_way.is_free() && (has_rate || section.has("alpha_us")))
    section.complain("alpha_us", fmt::format("the link '{}' has a list one_way: alpha_us and "
                                             "gbytes_per_s belong in its entries",
                                             name));
  section.check();  // first, because a rate may be there without its unit
  if (link.one_way.is_free())
    link.one_way = Curve(alpha_ps, byte_ps(section.above_zero("gbytes_per_s")));
  return link;
}

int link_index(Section& section, std::string_view key, const std::string& word,
               const std::vector<Link>& links) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links[i].name == word) return static_cast<int>(i);
    names.emplace_back(links[i].name);
  }
  section.complain(key, names.empty()
                            ? fmt::format("there is no link '{0}': describe it in [link.{0}]", word)
                            : unknown("link", word, names));
}

NetworkLevel read_level(Section& section, const std::vector<Link>& links, bool last) {
  NetworkLevel level{.name = section.text("name")};
  if (level.name.empty()) section.complain("name", "[[level]] lacks a name");
  if (!last && !section.has("size"))
    section.complain("size", fmt::format("the level '{}' lacks its size; only the last level may "
                                         "be of any size",
                                         level.name));
  level.size = section.whole("size", 1, 0);
  if (const auto link = section.text("link"); !link.empty())
    level.link = link_index(section, "link", link, links);
  level.sharing = static_cast<Sharing>(section.choice("shared", kSharing));
  level.links = section.whole("links", 1, 1);
  section.check();
  return level;
}

RankRanges read_ranks(Section& section, std::string_view key) {
  const auto text = section.text(key);
  if (text.empty())
    section.complain(key, fmt::format("{} is missing: write {} = \"0..3,7\"", key, key));
  try {
    return RankRanges::parse(text);
  } catch (const Error& error) {
    section.complain(key, error.what());
  }
}

RankTraits read_traits(Section& section) {
  RankTraits traits{.ranks = read_ranks(section, "ranks")};
  if (section.has("speed")) traits.speed = section.above_zero("speed");
  traits.delay_ps = section.number("delay_us", 0, 0) * kUs;
  if (section.has("gbytes_per_s")) traits.gbytes_per_s = section.above_zero("gbytes_per_s");
  section.check();
  return traits;
}

Path read_path(Section& section, const std::vector<Link>& links) {
  Path path{.from = read_ranks(section, "from"), .to = read_ranks(section, "to")};
  for (const auto& word : section.texts("links"))
    path.links.push_back(link_index(section, "links", word, links));
  const std::set<int> different(path.links.begin(), path.links.end());
  if (path.links.empty() || path.links.size() > kMostOnPath ||
      different.size() != path.links.size())
    section.complain("links", fmt::format("a path has 1 to {} links, each once: links = [\"wan\"]",
                                          kMostOnPath));
  path.both_ways = section.flag("both_ways", true);
  section.check();
  return path;
}

void read_noise(Section section, Noise& noise) {
  if (!section) return;
  noise.kind = section.has("kind") ? static_cast<Noise::Kind>(section.choice("kind", kNoise))
                                   : Noise::Kind::lognormal;
  noise.deviation = section.number("deviation_percent", 0, 0) / 100;
  const double most = noise.kind == Noise::Kind::normal ? 0.3 : 1;
  if (noise.deviation > most)
    section.complain("deviation_percent",
                     fmt::format("deviation_percent = {} is impossible: at most {} is, because "
                                 "times cannot be negative",
                                 noise.deviation * 100, most * 100));
  noise.seed = static_cast<std::uint64_t>(section.whole("seed", 0, 1));
  section.check();
}

void read_stragglers(Section section, Stragglers& stragglers) {
  if (!section) return;
  stragglers.share = section.number("share_percent", 0, 0) / 100;
  if (stragglers.share > 1)
    section.complain("share_percent", "share_percent is impossible: at most 100 is");
  if (section.has("speed")) stragglers.speed = section.above_zero("speed");
  stragglers.delay_ps = section.number("delay_us", 0, 0) * kUs;
  stragglers.seed = static_cast<std::uint64_t>(section.whole("seed", 0, 1));
  section.check();
}

void read_cores(Section section, Cores& cores) {
  if (!section) return;
  cores.count = section.whole("per_host", 1, 0);
  cores.progress = static_cast<Cores::Progress>(section.choice("progress", kProgress));
  cores.switch_ps = section.number("switch_us", 0, cores.switch_ps / kUs) * kUs;
  cores.tick_ps = section.number("tick_ms", 0, cores.tick_ps / 1e9) * 1e9;
  section.check();
}

std::string level_text(const NetworkLevel& level, const std::vector<Link>& links) {
  std::string text = fmt::format("\n[[level]]\nname = {}\n", quoted(level.name));
  if (level.size > 0) text += fmt::format("size = {}\n", level.size);
  if (level.link >= 0)
    text += fmt::format("link = {}\n", quoted(links[static_cast<std::size_t>(level.link)].name));
  if (level.sharing != Sharing::rank)
    text += fmt::format("shared = \"{}\"\n", kSharing[static_cast<std::size_t>(level.sharing)]);
  if (level.links != 1) text += fmt::format("links = {}\n", level.links);
  return text;
}

}  // namespace

std::string curve_text(std::string_view key, const Curve& curve) {
  if (curve.is_free()) return "";
  std::string text = fmt::format("{} = [\n", key);
  for (const auto& segment : curve.segments()) {
    text += "  { ";
    if (std::isfinite(segment.most_bytes))
      text += fmt::format("max_bytes = {:.0f}, ", segment.most_bytes);
    text += fmt::format("alpha_us = {}, gbytes_per_s = {} }},\n", segment.alpha_ps / kUs,
                        byte_ps(segment.byte_ps));
  }
  return text + "]\n";
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else
      result += c;
  }
  return result + "\"";
}

Topology read_topology(Section& top, Section& link) {
  Topology topology;
  for (auto& [name, section] : link.named_tables())
    topology.links.push_back(read_link(name, section));
  auto levels = top.tables("level");
  for (auto& section : levels) {
    if (topology.levels.size() == kMostLevels)
      section.complain("name", fmt::format("there are more than {} levels", kMostLevels));
    topology.levels.push_back(read_level(section, topology.links, &section == &levels.back()));
  }
  for (auto& section : top.tables("rank")) topology.ranks.push_back(read_traits(section));
  for (auto& section : top.tables("path"))
    topology.paths.push_back(read_path(section, topology.links));
  topology.placement = static_cast<RankOrder>(top.choice("placement", kRankOrders));
  if (!levels.empty()) topology.where = levels.back().where();
  return topology;
}

void read_disturbances(Section& top, Network& network) {
  read_noise(top.table("noise"), network.noise);
  read_stragglers(top.table("stragglers"), network.stragglers);
  read_cores(top.table("cores"), network.cores);
}

std::string links_text(const Topology& topology) {
  std::string text;
  for (const auto& link : topology.links) {
    text += fmt::format("\n[link.{}]\n", quoted(link.name)) + curve_text("one_way", link.one_way) +
            curve_text("exchange", link.exchange);
    if (link.capacity_gbytes > 0)
      text += fmt::format("capacity_gbytes_per_s = {}\n", link.capacity_gbytes);
    if (link.shared) text += "shared = true\n";
  }
  return text;
}

std::string topology_text(const Topology& topology) {
  std::string text;
  for (const auto& level : topology.levels) text += level_text(level, topology.links);
  for (const auto& traits : topology.ranks) {
    text += fmt::format("\n[[rank]]\nranks = \"{}\"\nspeed = {}\ndelay_us = {}\n",
                        traits.ranks.text(), traits.speed, traits.delay_ps / kUs);
    if (traits.gbytes_per_s > 0) text += fmt::format("gbytes_per_s = {}\n", traits.gbytes_per_s);
  }
  for (const auto& path : topology.paths) {
    std::vector<std::string> names;
    for (const int link : path.links)
      names.push_back(quoted(topology.links[static_cast<std::size_t>(link)].name));
    text += fmt::format("\n[[path]]\nfrom = \"{}\"\nto = \"{}\"\nlinks = [{}]\nboth_ways = {}\n",
                        path.from.text(), path.to.text(), fmt::join(names, ", "), path.both_ways);
  }
  return text;
}

std::string disturbances_text(const Network& network) {
  std::string text;
  if (const auto& cores = network.cores; cores.count > 0)
    text +=
        fmt::format("\n[cores]\nper_host = {}\nprogress = \"{}\"\nswitch_us = {}\ntick_ms = {}\n",
                    cores.count, kProgress[static_cast<std::size_t>(cores.progress)],
                    cores.switch_ps / kUs, cores.tick_ps / 1e9);
  if (const auto& noise = network.noise; noise != Noise{})
    text += fmt::format("\n[noise]\nkind = \"{}\"\ndeviation_percent = {}\nseed = {}\n",
                        kNoise[static_cast<std::size_t>(noise.kind)], noise.deviation * 100,
                        noise.seed);
  if (const auto& slow = network.stragglers; slow != Stragglers{})
    text +=
        fmt::format("\n[stragglers]\nshare_percent = {}\nspeed = {}\ndelay_us = {}\nseed = {}\n",
                    slow.share * 100, slow.speed, slow.delay_ps / kUs, slow.seed);
  return text;
}

}  // namespace sinew
