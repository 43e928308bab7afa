// What ranks tell each other through the store before they connect.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bitset>
#include <charconv>
#include <map>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "transport/tcp/mesh.hpp"

namespace sinew::tcp {
namespace {

constexpr std::string_view kIntroduction = "sinew-tcp-2";

using CpuBits = std::bitset<CPU_SETSIZE>;

CpuBits parse_cpus(std::string_view hex) {
  CpuBits bits;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    unsigned digit = 0;
    const char letter = hex[hex.size() - 1 - i];
    std::from_chars(&letter, &letter + 1, digit, 16);
    for (unsigned bit = 0; bit < 4; ++bit)
      if (4 * i + bit < bits.size()) bits[4 * i + bit] = (digit >> bit & 1) != 0;
  }
  return bits;
}

}  // namespace

std::string write_card(const Card& card) {
  return fmt::format("{} {} {} {} {} {}", kIntroduction, card.address.text(), card.host, card.cpus,
                     card.quota, card.agreed);
}

Card read_card(const std::string& text) {
  const auto words = split(text, ' ');
  Card card;
  if (words.size() != 6 || words[0] != kIntroduction)
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' does not introduce a rank to this version of Sinew", text));
  card.address = parse_address(words[1]);
  card.host = words[2];
  card.cpus = words[3];
  std::from_chars(words[4].data(), words[4].data() + words[4].size(), card.quota);
  card.agreed = words[5];
  return card;
}

bool are_on_one_host(const std::vector<Card>& cards) {
  return std::all_of(cards.begin(), cards.end(), [&](const Card& card) {
    return card.host == cards.front().host && card.address.host() == cards.front().address.host();
  });
}

int shared_cores(const std::vector<Card>& cards) {
  struct Host {
    int ranks = 0, quota = 0;
    CpuBits cpus;
  };
  std::map<std::string, Host> hosts;
  for (const auto& card : cards) {
    auto& host = hosts[card.host];
    ++host.ranks;
    host.quota = std::max(host.quota, card.quota);
    host.cpus |= parse_cpus(card.cpus);
  }
  const auto ranks = static_cast<int>(cards.size());
  int all = 0;
  int crowded = ranks + 1;
  for (const auto& [name, host] : hosts) {
    const int cores = std::max(1, std::min(host.quota, static_cast<int>(host.cpus.count())));
    all += cores;
    if (cores < host.ranks) crowded = std::min(crowded, std::max(1, ranks * cores / host.ranks));
  }
  return crowded <= ranks ? crowded : all;
}

}  // namespace sinew::tcp
