#include "transport/descriptor.hpp"

#include <fmt/format.h>
#include <xxhash.h>

namespace sinew {

std::uint64_t algorithm_key(std::string_view name) noexcept {
  return name.empty() ? 0 : XXH3_64bits(name.data(), name.size());
}

std::uint64_t hash_of(const OpDescriptor& d) noexcept {
  const std::uint64_t fields[] = {static_cast<std::uint64_t>(d.collective),
                                  static_cast<std::uint64_t>(d.dtype),
                                  static_cast<std::uint64_t>(d.op),
                                  static_cast<std::uint64_t>(d.root),
                                  d.count,
                                  d.algorithm};
  return XXH3_64bits(fields, sizeof(fields));
}

std::string describe(const OpDescriptor& d) {
  std::string text(name(d.collective));
  if (d.collective != Collective::barrier) {
    text += fmt::format(" of {}{}", d.count > 0 ? fmt::format("{} ", d.count) : "", name(d.dtype));
    if (reduces(d.collective)) text += fmt::format(" {}", name(d.op));
    if (has_root(d.collective)) text += fmt::format(" root {}", d.root);
  }
  for (const auto& algorithm : algorithms())
    if (algorithm.collective == d.collective && algorithm_key(algorithm.name) == d.algorithm)
      text += fmt::format(" by {}", algorithm.name);
  if (d.tag == kTrialTag)
    text += ", the end of its trial";
  else if (d.tag != 0)
    text += fmt::format(" tag {}", d.tag);
  return text;
}

}  // namespace sinew
