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

namespace {

// "1000 f32", "parts of f32 (likely_bytes from 1024 to 2047)"
std::string operand(const OpDescriptor& d) {
  if ((d.count & kUneven) == 0)
    return fmt::format("{}{}", d.count > 0 ? fmt::format("{} ", d.count) : "", name(d.dtype));
  auto text = fmt::format("uneven parts of {}", name(d.dtype));
  // All ranks know the counts of the others.
  const bool private_counts = d.collective == Collective::alltoall ||
                              d.collective == Collective::scatter ||
                              d.collective == Collective::gather;
  const auto bits = d.count & ~kUneven;
  if (private_counts && bits > 0 && bits <= 64)
    text += fmt::format(" (likely_bytes from {} to {})", std::uint64_t{1} << (bits - 1),
                        ~std::uint64_t{0} >> (64 - bits));
  return text;
}

}  // namespace

std::string describe(const OpDescriptor& d) {
  std::string text(name(d.collective));
  if (d.collective != Collective::barrier) {
    text += " of " + operand(d);
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
